"""Exact privacy of releases whose noise is thrown into cells: shuffled histograms.

Noise messages are draws from a table: each falls into one of several categories (a cell, or
dummy). Everything published is ``o = d + sum over draws of R[category]``, where R belongs to the
group of draws. `read` learns the groups and R from the real code path, one category at a time, and
then has to predict what random draws give, on the data set and on its neighbours, however the draws
and the messages are ordered.

Groups with the same table and the same R are one multinomial histogram h. When neighbours differ by
one unit that moves from category a to b, d' + R·h = d + R·(h + e_b - e_a): an attacker who sees all
of o tells them apart at most as well as by looking at h against h + e_b - e_a, whose likelihood
ratio is (y_a/w_a)/(y_b/w_b). If no such move of every group explains d' - d, there is something
without noise: epsilon = inf. Nothing here knows what a group of counters or a policy is.
"""

import functools
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.auditing.pairs import View, exact_curve, thrown
from discreet.auditing.paths import Path, Run
from discreet.errors import UnsupportedError
from discreet.privacy.sampling.samplers import Size

_SAME = 1e-6
_SILENT = 32
"""A single draw among more categories than this is taken to change nothing, and then has to."""
_TRIALS = 3
_NO_VIEW = "The noise of this release is not messages that are counted by their categories."

Throw = tuple[int, float, float]
"""Draws, and the probabilities of the two categories between which a unit moves."""


@dataclass(frozen=True)
class Group:
    """So many draws from one table of probabilities."""

    draws: int
    table: bytes

    @property
    def probabilities(self) -> FloatArray:
        return np.frombuffer(self.table)


@dataclass
class CategorySampler:
    """Group number i has the histogram ``histograms[i]`` over its categories, or all are first.

    The order of a group's draws, and every permutation, comes from ``order``.
    """

    histograms: dict[int, IntArray]
    secure: bool = False
    order: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    groups: list[Group] = field(default_factory=list)

    def _histogram(self, draws: int, probabilities: FloatArray) -> IntArray:
        number = len(self.groups)
        self.groups.append(Group(draws, probabilities.tobytes()))
        if number in self.histograms:
            return self.histograms[number]
        first = np.zeros(probabilities.size, np.int64)
        first[0] = draws
        return first

    def table(self, weights: IntArray, size: Size) -> IntArray:
        """The categories of a histogram, in any order."""
        shape = (size,) if isinstance(size, int) else size
        seen = self._histogram(math.prod(shape), np.asarray(weights) / np.sum(weights))
        values = np.repeat(np.arange(seen.size), seen)
        return self.order.permutation(values).reshape(shape)

    def scatter(self, balls: int, probability: float, cells: int) -> IntArray:
        """A histogram without its first category, which is dummy."""
        each = np.full(cells, probability / cells)
        return self._histogram(balls, np.r_[1 - probability, each])[1:].copy()

    def permutation(self, length: int) -> IntArray:
        return np.asarray(self.order.permutation(length), np.int64)

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedError(_NO_VIEW)


@dataclass(frozen=True, eq=False)
class Categorical(View):
    """A release as ``o = d + sum of R·h``, with all moves of one user.

    Attributes:
        groups: draws that are counted together.
        responses: R of each, ``[categories, outputs]``.
        moves: d' - d of every neighbour.
    """

    groups: tuple[Group, ...]
    responses: tuple[FloatArray, ...]
    moves: tuple[FloatArray, ...]

    def curve(self, epsilon: float, delta: float) -> tuple[float, float]:
        if any(moved is None for moved in self._moved):
            return math.inf, 1.0
        points = [_composed(frozenset(m.items()), epsilon, delta) for m in self._distinct if m]
        found = max((point[0] for point in points), default=0.0)
        return found, max((point[1] for point in points), default=0.0)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the noise of all outputs."""
        means, variances = np.zeros_like(self.moves[0]), np.zeros_like(self.moves[0])
        for group, response in zip(self.groups, self.responses, strict=True):
            each = group.probabilities @ response
            means += group.draws * each
            variances += group.draws * (group.probabilities @ response**2 - each**2)
        return means, np.sqrt(np.maximum(variances, 0.0))

    def units(self, index: int) -> tuple[tuple[int, int, int], ...] | None:
        """(group, from, to) of every unit that neighbour ``index`` moves, None if inexplicable."""
        rest, found = self.moves[index].copy(), []
        for number, response in enumerate(self.responses):
            here = np.abs(response).any(axis=0)
            if not np.abs(rest[here]).max(initial=0.0) > _SAME:
                continue
            # Categories a and b with R[b] - R[a] = rest: any is a bound, likely ones are best.
            moved = response[:, here]
            apart = np.abs(moved[None] - moved[:, None] - rest[here]).max(axis=-1)
            fits = np.argwhere(apart < _SAME).tolist()
            if not fits:
                return None
            chances = self.groups[number].probabilities
            out, into = max(fits, key=lambda pair, c=chances: float(c[pair].min()))  # type: ignore[misc]
            found.append((number, int(out), int(into)))
            rest -= response[into] - response[out]
        return tuple(found) if np.abs(rest).max(initial=0.0) < _SAME else None

    @functools.cached_property
    def _moved(self) -> list[Counter[Throw] | None]:
        """For every neighbour, how often each kind of unit moves."""
        found: list[Counter[Throw] | None] = []
        for index in range(len(self.moves)):
            units = self.units(index)
            kinds = [(self.groups[number], out, into) for number, out, into in units or ()]
            chances = [(g.draws, g.probabilities[a], g.probabilities[b]) for g, a, b in kinds]
            counted = Counter((draws, float(a), float(b)) for draws, a, b in chances)
            found.append(None if units is None else counted)
        return found

    @property
    def _distinct(self) -> list[Counter[Throw]]:
        """Moves that no other one covers: whoever moves less can be told apart less."""
        known = sorted(filter(None, self._moved), key=lambda moved: -moved.total())
        kept: list[Counter[Throw]] = []
        for moved in known:
            if not any(moved <= larger for larger in kept):
                kept.append(moved)
        return kept


@functools.lru_cache(maxsize=256)
def _composed(
    times: frozenset[tuple[Throw, int]], epsilon: float, delta: float
) -> tuple[float, float]:
    """Both directions of all moved units."""
    there = [(thrown(draws, a, b), count) for (draws, a, b), count in times]
    curves = [exact_curve(there, epsilon, delta)]
    if any(a != b for (_, a, b), _ in times):
        back = [(thrown(draws, b, a), count) for (draws, a, b), count in times]
        curves.append(exact_curve(back, epsilon, delta))
    return max(found for found, _ in curves), max(lost for _, lost in curves)


def read(path: Path, *, secure: bool = False) -> Categorical:
    """The path as groups of draws with their responses.

    Raises:
        UnsupportedError: if noise enters in another way, or depends on the data.
    """
    still = CategorySampler({}, secure)
    base = path.base(still)
    groups = tuple(still.groups)
    if not groups:
        raise UnsupportedError(_NO_VIEW)
    moves = []
    for run in path.neighbours.values():
        sampler = CategorySampler({}, secure)
        seen = run(sampler)
        if seen.shape != base.shape or tuple(sampler.groups) != groups:
            raise UnsupportedError("The noise of this release depends on the data it hides.")
        moves.append(seen - base)
    responses = [_response(path.base, i, groups, base, secure) for i in range(len(groups))]
    if not _predicts(path, groups, base, responses, moves, secure):
        raise UnsupportedError(_NO_VIEW)
    return Categorical(*_together(groups, responses), tuple(moves))


def _response(
    run: Run, number: int, groups: tuple[Group, ...], base: FloatArray, secure: bool
) -> FloatArray:
    """What one draw of a group changes, category by category."""
    group = groups[number]
    categories = group.probabilities.size
    response = np.zeros((categories, base.size))
    if group.draws == 0 or (group.draws == 1 and categories > _SILENT):
        return response
    for category in range(1, categories):
        one = np.zeros(categories, np.int64)
        one[0], one[category] = group.draws - 1, 1
        response[category] = run(CategorySampler({number: one}, secure)) - base
    return response


def _predicts(
    path: Path,
    groups: tuple[Group, ...],
    base: FloatArray,
    responses: list[FloatArray],
    moves: list[FloatArray],
    secure: bool,
) -> bool:
    """Random histograms in random orders, on every data set."""
    rng = np.random.default_rng(1)
    worlds = [(path.base, 0 * base), *zip(path.neighbours.values(), moves, strict=True)]
    for run, move in worlds * _TRIALS:
        drawn = {i: rng.multinomial(g.draws, g.probabilities) for i, g in enumerate(groups)}
        expected = base + move + sum(drawn[i] @ responses[i] for i in drawn)
        sampler = CategorySampler(drawn, secure, order=rng)
        error = np.abs(run(sampler) - expected)
        if (error > _SAME + 1e-9 * np.abs(expected)).any() or tuple(sampler.groups) != groups:
            return False
    return True


def _together(
    groups: tuple[Group, ...], responses: list[FloatArray]
) -> tuple[tuple[Group, ...], tuple[FloatArray, ...]]:
    """Groups of one table whose draws do the same are one group; those that do nothing are none."""
    found: dict[tuple[bytes, bytes], tuple[int, FloatArray]] = {}
    for group, response in zip(groups, responses, strict=True):
        if np.abs(response).any():
            key = group.table, np.rint(response / _SAME).astype(np.int64).tobytes()
            draws, _ = found.get(key, (0, response))
            found[key] = draws + group.draws, response
    merged = tuple(Group(draws, table) for (table, _), (draws, _) in found.items())
    return merged, tuple(response for _, response in found.values())


def trades(path: Path, seen: Categorical, *, secure: bool = False) -> bool:
    """Whether a user and a noise message can change places without changing a single bit.

    Other data with h, and this data with h + e_b - e_a, bit by bit.
    """
    still = CategorySampler({}, secure)
    base = path.base(still)
    # For every merged group the groups of draws that it is made of.
    groups = tuple(still.groups)
    alone = [_response(path.base, i, groups, base, secure) for i in range(len(groups))]
    own = [
        [
            i
            for i, group in enumerate(groups)
            if group.table == merged.table and np.allclose(alone[i], response, atol=_SAME)
        ]
        for merged, response in zip(seen.groups, seen.responses, strict=True)
    ]
    for index, run in enumerate(path.neighbours.values()):
        units = seen.units(index)
        for trial in range(2 * _TRIALS if units else 0):
            rng = np.random.default_rng(trial)
            drawn = {
                i: rng.multinomial(g.draws, g.probabilities) for i, g in enumerate(still.groups)
            }
            moved = _moved(drawn, own, units or ())
            if moved is None:  # nothing to trade in this draw
                continue
            other = run(CategorySampler(drawn, secure))
            if not np.array_equal(other, path.base(CategorySampler(moved, secure))):
                return False
    return True


def _moved(
    drawn: dict[int, IntArray], own: list[list[int]], units: tuple[tuple[int, int, int], ...]
) -> dict[int, IntArray] | None:
    """Histograms in which noise messages have moved like the user's units."""
    moved = {i: histogram.copy() for i, histogram in drawn.items()}
    for number, out, into in units:
        holder = next((i for i in own[number] if moved[i][out]), None)
        if holder is None:
            return None
        moved[holder][out] -= 1
        moved[holder][into] += 1
    return moved
