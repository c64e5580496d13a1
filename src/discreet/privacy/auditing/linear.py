"""Exact privacy of additive mechanisms, read off their real code path.

Everything a release publishes is ``o = d + B·z``, where d depends on data and z are independent
draws whose laws are known. Impulses through the real code give B and the laws; running it on two
neighbours without noise gives the move ``D = d' - d``. An attacker who sees all of o can tell the
neighbours apart exactly as well as by looking at ``z`` against ``z + c`` for some c with B·c = D:

* no such c: some combination of outputs carries no noise at all (shared noise): epsilon = inf;
* B invertible with an integer c (one-shot releases, trees): compose the shifts c exactly;
* Gaussian z: the shortest c, in standard deviations, gives the exact curve (Balle and Wang 2018);
* Laplace z: every c proves epsilon <= sum |c_j| / scale_j; the least of them is a linear program.

Nothing here knows what a tree or a Toeplitz matrix is.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.privacy.auditing.exact import (
    Composition,
    exact_delta,
    exact_epsilon,
    gaussian_delta,
    gaussian_epsilon,
)
from discreet.privacy.auditing.neighbours import Episode, Plan, batch_of, opposites, vector
from discreet.privacy.auditing.probes import Law, PresetSampler
from discreet.privacy.plans import BatchPlan, StreamPlan, with_counts

_SAME = 1e-6
_HEIGHT = 1 << 44
"""Of impulses: high, so that the grid on which a mechanism releases does not matter."""


@dataclass(frozen=True, eq=False)
class Additive:
    """A mechanism seen as ``o = d + B·z`` with all moves D of one user."""

    laws: tuple[Law, ...]
    response: FloatArray
    moves: tuple[FloatArray, ...]

    def epsilon(self, delta: float) -> float:
        """The exact epsilon at ``delta``, over all neighbours."""
        return max(self._epsilon(move, delta) for move in self._distinct)

    def delta(self, epsilon: float) -> float:
        """The exact delta at ``epsilon``, over all neighbours."""
        return max(self._delta(move, epsilon) for move in self._distinct)

    @functools.cached_property
    def _distinct(self) -> list[FloatArray]:
        """Moves that differ in more than the names of the draws that hide them."""
        kinds: dict[object, FloatArray] = {}
        for index, move in enumerate(self.moves):
            counted = self._counted(move)
            kinds.setdefault(index if counted is None else frozenset(counted.items()), move)
        return list(kinds.values())

    def _epsilon(self, move: FloatArray, delta: float) -> float:
        shifts = self._shifts(move)
        if shifts is None:
            return math.inf
        views = self._integer_views(move)
        if views is not None:
            return exact_epsilon(views, delta)
        if self._gaussian:
            return gaussian_epsilon(float(np.linalg.norm(shifts / self._deviations)), delta)
        return self._least_absolute(move)

    def _delta(self, move: FloatArray, epsilon: float) -> float:
        shifts = self._shifts(move)
        if shifts is None:
            return 1.0
        views = self._integer_views(move)
        if views is not None:
            return exact_delta(views, epsilon)
        if self._gaussian:
            return gaussian_delta(float(np.linalg.norm(shifts / self._deviations)), epsilon)
        # A bound on epsilon says nothing about delta below it.
        return 0.0 if self._least_absolute(move) <= epsilon * (1 + _SAME) else math.nan

    @property
    def _gaussian(self) -> bool:
        return all(law.kind == "gaussian" for law in self.laws)

    @property
    def _deviations(self) -> FloatArray:
        return np.array([law.scale * math.sqrt(law.copies) for law in self.laws])

    def _shifts(self, move: FloatArray) -> FloatArray | None:
        """The shortest c with B·c = D, or None."""
        scale = self._deviations
        scaled, *_ = np.linalg.lstsq(self.response * scale, move, rcond=1e-12)
        shifts: FloatArray = scaled * scale
        short = np.abs(self.response @ shifts - move).max(initial=0.0)
        return shifts if short < _SAME else None

    def integer_shifts(self, move: FloatArray) -> IntArray | None:
        """The one c with B·c = D, if there is only one and it is an integer vector.

        Of bounded noise several may be summed; then the shortest c will do, as a bound.
        """
        shifts = self._shifts(move)
        bounded = all(law.kind == "table" for law in self.laws)
        if shifts is None or not (bounded or self._one_to_one):
            return None
        whole = np.rint(shifts)
        if np.abs(shifts - whole).max(initial=0.0) > _SAME * max(1.0, np.abs(whole).max()):
            return None
        return whole.astype(np.int64)

    @functools.cached_property
    def _one_to_one(self) -> bool:
        return bool(np.linalg.matrix_rank(self.response) == len(self.laws))

    def _integer_views(self, move: FloatArray) -> Composition | None:
        counted = self._counted(move)
        if counted is None:
            return None
        return [(law.pair(shift), times) for (law, shift), times in counted.items()]

    def _counted(self, move: FloatArray) -> Counter[tuple[Law, int]] | None:
        """How often each law hides each shift."""
        whole = self.integer_shifts(move)
        if whole is None or not all(law.exact for law in self.laws):
            return None
        return Counter((self.laws[i], self._signed(i, whole)) for i in np.flatnonzero(whole))

    def _signed(self, index: Any, whole: IntArray) -> int:
        symmetric = self.laws[index].kind in ("laplace", "gaussian")
        return abs(int(whole[index])) if symmetric else int(whole[index])

    def _least_absolute(self, move: FloatArray) -> float:
        from scipy.optimize import linprog

        if any(law.kind != "laplace" for law in self.laws):
            raise UnsupportedError("Only Laplace and Gaussian noise can be audited in mixtures.")
        prices = np.array([1 / law.scale for law in self.laws])
        found = linprog(
            np.r_[prices, prices], A_eq=np.hstack([self.response, -self.response]), b_eq=move
        )
        return float(found.fun) if found.status == 0 else math.inf


def additive(plan: Plan, *, users: int = 1) -> Additive:
    """Probe a plan.

    Args:
        plan: what to probe; the number of runs is that of its draws, so use a small shape.
        users: the size of the batch (streams: the plan's own length).

    Raises:
        UnsupportedError: if the release is not data plus noise of a fixed law.
    """
    if isinstance(plan, StreamPlan) and plan.response != "unit":
        raise UnsupportedError("This stream randomises the data instead of adding noise.")
    runs = _runs(plan, users)
    still = PresetSampler.still()
    base = runs[0](still)
    columns = [
        (runs[0](PresetSampler.impulse(k, height)) - base) / height
        for k, height in enumerate(map(_height, still.laws))
    ]
    moves = tuple(run(PresetSampler.still()) - base for run in runs[1:])
    seen = Additive(tuple(still.laws), _tidy(np.array(columns).T), moves)
    _check_additive(seen, base, runs)
    return seen


def _height(law: Law) -> int:
    """So high that shifts of noise of very many steps are found to the single step."""
    return _HEIGHT if law.exact else max(_HEIGHT, 1 << math.ceil(math.log2(law.scale)) + 14)


def _runs(plan: Plan, users: int) -> list[Callable[[PresetSampler], FloatArray]]:
    """The release of some data, and of all its neighbours, as functions of the sampler."""
    return _batch_runs(plan, users) if isinstance(plan, BatchPlan) else _stream_runs(plan)


def _check_additive(
    seen: Additive, base: FloatArray, runs: list[Callable[[PresetSampler], FloatArray]]
) -> None:
    """Noise must enter in the same way, and be drawn from the same laws, whatever the data."""
    draws = np.random.default_rng(1).integers(-1000, 1000, len(seen.laws))
    for run, move in ((runs[0], 0.0), (runs[1], seen.moves[0])):
        sampler = PresetSampler(draws)
        expected = base + move + seen.response @ draws
        if np.abs(run(sampler) - expected).max(initial=0.0) > 2 or tuple(sampler.laws) != seen.laws:
            raise UnsupportedError("The noise of this release depends on the data it hides.")


def bitwise(plan: Plan, *, users: int = 1) -> bool:
    """Whether data and noise can be traded against each other without changing a single bit.

    What is released must be a function of "data plus noise" alone: data d' with draws z and data d
    with draws z + c give the same output when B·c = d' - d. Where the sum was taken in floating
    point the last bits differ, and tell d and d' apart. Integer outputs pass as they are.
    """
    seen = additive(plan, users=users)
    runs = _runs(plan, users)
    draws = _tempting_draws(seen, runs[0](PresetSampler.still()))
    outputs = [runs[0](PresetSampler(z)) for z in draws]
    if all(np.array_equal(o, np.rint(o)) for o in outputs):
        return True
    shifts = seen.integer_shifts(seen.moves[0])
    if shifts is None:
        return False
    return all(
        np.array_equal(runs[1](PresetSampler(z)), runs[0](PresetSampler(z + shifts))) for z in draws
    )


def _tempting_draws(seen: Additive, base: FloatArray) -> IntArray:
    """Half of the draws bring outputs near zero, where floating-point numbers are finest."""
    draws = np.random.default_rng(0).integers(-99, 100, (20, len(seen.laws)))
    cancel = np.rint(np.linalg.lstsq(seen.response, -base, rcond=1e-12)[0]).astype(np.int64)
    draws[::2] = cancel + draws[::2] // 25
    return draws


def _tidy(response: FloatArray) -> FloatArray:
    """Whole numbers, where rounding by the mechanism or by division left almost whole ones."""
    whole = np.rint(response)
    almost = (whole != 0) & (np.abs(response - whole) < 1 / _HEIGHT)
    return np.where(almost, whole, response)


def _batch_runs(plan: BatchPlan, users: int) -> list[Callable[[PresetSampler], FloatArray]]:
    taker = with_counts(plan)

    def released(user: Episode) -> Callable[[PresetSampler], FloatArray]:
        return lambda sampler: vector(
            taker.release(batch_of(user, users, plan.shape), sampler=sampler)
        )

    return [released(user) for user in opposites(plan.shape)]


def _stream_runs(plan: StreamPlan) -> list[Callable[[PresetSampler], FloatArray]]:
    """The stream of equal users, and every stream in which one of them is another."""
    usual, other = (user.counts(plan.shape) for user in opposites(plan.shape))

    def released(position: int) -> Callable[[PresetSampler], FloatArray]:
        def run(sampler: PresetSampler) -> FloatArray:
            stream = plan.open(sampler)
            users = [other if k == position else usual for k in range(plan.episodes)]
            return np.concatenate([vector(stream.add(user)) for user in users])

        return run

    return [released(position) for position in range(-1, plan.episodes)]
