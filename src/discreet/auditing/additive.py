"""Exact privacy of additive mechanisms, from how their draws enter what is published.

Everything a release publishes is ``o = d + B·z``, where d depends on data and z are independent
draws of known distributions. `probe` reads B, the distributions and the moves ``D = d' - d`` of
neighbours off the real code. An attacker who sees all of o can tell the neighbours apart exactly as
well as by looking at ``z`` against ``z + c`` for some c with B·c = D:

* no such c: some combination of outputs carries no noise at all (shared noise): epsilon = inf;
* B invertible with an integer c (one-shot releases, trees): compose the shifts c exactly;
* Gaussian z: the shortest c, in standard deviations, gives the exact curve (Balle and Wang 2018);
* Laplace z: every c proves epsilon <= sum |c_j| / scale_j; the least of them is a linear program.

`probe`: where every draw is added as it is (one-shot noise, trees), draws are probed thirty at a
time: draw number k is 2^k, and the binary digits of what is published say which of them are in it.
Otherwise each draw gets an impulse of its own. Either way the matrix has to predict what random
draws give, on the data set and on its neighbours.

`trades`: what is published may depend on data plus noise alone, to the last bit. Data d' with draws
z and data d with draws z + c must give bit-equal outputs. Where the sum was taken in floating point
the last bits differ, and tell d and d' apart. Integer outputs pass as they are. (Blocks of noise
are drawn ahead and added to true counts by the caller: of them it is asked that the sum be exact,
on a dyadic grid, whatever the count.) The integers c follow from B where it is well conditioned.
Where a release is rounded to a coarser grid than its noise, they are *measured*: as a draw grows,
the output jumps from one value of its grid to the next, in both worlds; the draws at which it jumps
differ by c. If what is published is a function of data plus noise, then c does not depend on where
it was measured: other draws, moved by the same c, agree to the last bit too.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.auditing.pairs import View, exact_curve
from discreet.auditing.paths import Path, Run
from discreet.auditing.probes import Noise, PresetSampler
from discreet.errors import UnsupportedError
from discreet.privacy.accounting.closed_forms import gaussian_delta, gaussian_epsilon

DEPENDS = "The noise of this release depends on the data it hides."
_SAME = 1e-6
_HEIGHT = 1 << 44
"""Of impulses: high, so that the grid on which a mechanism releases does not matter."""
_PACKED = 30
_ROUNDED = 2.0
"""What is released may be rounded to integers, in both of two runs that are compared."""
_TRIALS = 2
_NEIGHBOURS = 3
_FIRST = 1 << 10
_GRID = 2.0**-30
"""Finer than every grid on which blocks are handed out."""


@dataclass(frozen=True, eq=False)
class Additive(View):
    """A mechanism seen as ``o = d + B·z`` with all moves D of one user."""

    noises: tuple[Noise, ...]
    response: FloatArray
    moves: tuple[FloatArray, ...]
    places: tuple[int, ...] = ()
    """Which draw of the code each noise is (bits that come in one sum are one)."""

    def curve(self, epsilon: float, delta: float) -> tuple[float, float]:
        points = [self._point(index, epsilon, delta) for index in self._distinct]
        return max(found for found, _ in points), max(lost for _, lost in points)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the noise of all outputs."""
        means = self.response @ np.array([noise.mean for noise in self.noises])
        return means, np.sqrt(
            self.response**2 @ np.array([noise.variance for noise in self.noises])
        )

    @functools.cached_property
    def _both_ways(self) -> FloatArray:
        """All moves as columns; with noise that is not symmetric also their opposites."""
        moves = np.array(self.moves).T
        symmetric = all(noise.symmetric for noise in self.noises)
        return moves if symmetric else np.hstack([moves, -moves])

    @functools.cached_property
    def _distinct(self) -> list[int]:
        """Moves that no other one covers.

        A move is covered where another one hides the same shifts in the same noise and more
        besides: whoever tells the former apart can tell the latter, by looking away.
        """
        known = {index: self._counted(index) for index in range(self._both_ways.shape[1])}
        kept: list[int] = []
        for index in sorted(known, key=lambda i: -sum((known[i] or Counter()).values())):
            counted = known[index]
            covered = counted is not None and any(
                (larger := known[other]) is not None and counted <= larger for other in kept
            )
            if not covered:
                kept.append(index)
        return kept

    def _point(self, index: int, epsilon: float, delta: float) -> tuple[float, float]:
        shifts = self._shifts[index]
        if shifts is None:
            return math.inf, 1.0
        if not shifts.any():  # what is different is not counted
            return 0.0, 0.0
        counted = self._counted(index)
        if counted is not None:
            return _composed(frozenset(counted.items()), epsilon, delta)
        if all(noise.kind == "gaussian" for noise in self.noises):
            mu = float(np.linalg.norm(shifts / self._deviations))
            found = gaussian_epsilon(1.0, mu, delta) if delta > 0 else math.inf
            return found, gaussian_delta(1.0, mu, epsilon)
        found = self._least_absolute(index)
        # A bound on epsilon says nothing about delta below it.
        return found, 0.0 if found <= epsilon * (1 + _SAME) else math.nan

    @property
    def _deviations(self) -> FloatArray:
        """What shifts are measured against: any positive numbers where draws are exact."""
        return np.array([noise.scale * math.sqrt(noise.copies) for noise in self.noises])

    @functools.cached_property
    def _shifts(self) -> list[FloatArray | None]:
        """For every move the shortest c with B·c = D, or None."""
        moves, scale = self._both_ways, self._deviations
        shifts = np.zeros((len(self.noises), moves.shape[1]))
        for outputs, draws in self._parts:
            scaled, *_ = np.linalg.lstsq(
                self.response[np.ix_(outputs, draws)] * scale[draws], moves[outputs], rcond=1e-12
            )
            shifts[draws] = scaled * scale[draws, None]
        short = np.abs(self.response @ shifts - moves).max(axis=0, initial=0.0)
        return [c if miss < _SAME else None for c, miss in zip(shifts.T, short, strict=True)]

    @functools.cached_property
    def _parts(self) -> list[tuple[IntArray, IntArray]]:
        """Outputs and draws that have to do with each other: counters, as a rule, one by one."""
        from scipy.sparse import bmat, csr_matrix
        from scipy.sparse.csgraph import connected_components

        linked = csr_matrix(self.response != 0)
        _, labels = connected_components(bmat([[None, linked], [linked.T, None]]))
        ends, starts = labels[: len(self.response)], labels[len(self.response) :]
        return [
            (np.flatnonzero(ends == part), np.flatnonzero(starts == part))
            for part in np.unique(starts)
        ]

    def shifts(self, index: int) -> FloatArray | None:
        """The shortest c with B·c = D for neighbour number ``index``, or None."""
        return self._shifts[index]

    def integer_shifts(self, index: int) -> IntArray | None:
        """The one c with B·c = D, if there is only one and it is an integer vector.

        Of bounded noise several may be summed; then the shortest c will do, as a bound.
        """
        shifts = self._shifts[index]
        bounded = all(noise.kind == "table" for noise in self.noises)
        if shifts is None or not (bounded or self.one_to_one):
            return None
        whole = np.rint(shifts)
        if np.abs(shifts - whole).max(initial=0.0) > _SAME * max(1.0, np.abs(whole).max()):
            return None
        return whole.astype(np.int64)

    @functools.cached_property
    def one_to_one(self) -> bool:
        """No two vectors of draws give the same output."""
        return all(
            np.linalg.matrix_rank(self.response[np.ix_(outputs, draws)]) == len(draws)
            for outputs, draws in self._parts
        )

    def _counted(self, index: int) -> Counter[tuple[Noise, int]] | None:
        """How often each noise hides each shift."""
        whole = self.integer_shifts(index) if all(noise.exact for noise in self.noises) else None
        if whole is None:
            return None
        hidden = ((self.noises[i], int(whole[i])) for i in np.flatnonzero(whole))
        return Counter((noise, abs(shift) if noise.symmetric else shift) for noise, shift in hidden)

    def _least_absolute(self, index: int) -> float:
        from scipy.optimize import linprog

        if any(noise.kind != "laplace" for noise in self.noises):
            raise UnsupportedError("Only Laplace and Gaussian noise can be audited in mixtures.")
        prices = np.array([1 / noise.scale for noise in self.noises])
        found = linprog(
            np.r_[prices, prices],
            A_eq=np.hstack([self.response, -self.response]),
            b_eq=self._both_ways[:, index],
        )
        return float(found.fun) if found.status == 0 else math.inf


@functools.lru_cache(maxsize=512)
def _composed(
    counted: frozenset[tuple[tuple[Noise, int], int]], epsilon: float, delta: float
) -> tuple[float, float]:
    """Noises, the shifts that they hide, and how often: the same on many paths."""
    ordered = sorted(counted, key=repr)  # sums are rounded: the same in every process
    views = [(noise.pair(shift), times) for (noise, shift), times in ordered]
    return exact_curve(views, epsilon, delta)


# How draws enter what is published, read off the real code path as a matrix.


def probe(path: Path, *, secure: bool = False, hint: Additive | None = None) -> Additive:
    """The path as ``o = d + B·z``.

    Args:
        path: what to probe.
        secure: the kind of sampler that the code gets to see.
        hint: what another path was found to do that may ask for the same draws in another order
            (and publish less); it is verified, not believed.

    Raises:
        UnsupportedError: if noise enters in another way, or depends on the data.
    """
    still = PresetSampler.still(secure=secure)
    base = path.base(still)
    noises = tuple(still.noises)
    if any(noise.kind == "scatter" for noise in noises):
        raise UnsupportedError("Cells that share their noise are no counters with noise added.")
    # A first draw of several values that does not enter as a number names a place.
    first = next((i for i, noise in enumerate(noises) if noise.kind == "table"), None)
    if first is not None and (noises[first].largest or 0) >= 2:
        one, two = (
            path.base(PresetSampler(np.r_[np.zeros(first, np.int64), value], secure)) - base
            for value in (1, 2)
        )
        if (np.abs(two - 2 * one) > 1e-6).any():
            raise UnsupportedError(DEPENDS)
    moves = []
    for run in path.neighbours.values():
        sampler = PresetSampler.still(secure=secure)
        there = run(sampler)
        if there.shape != base.shape:
            raise UnsupportedError("The size of what is published depends on the data.")
        if tuple(sampler.noises) != noises:
            raise UnsupportedError(DEPENDS)
        moves.append(there - base)
    for response in _candidates(path.base, noises, base, secure, hint):
        if _predicts(path, noises, base, response, moves, secure):
            kept, places = _merged(noises, response)
            return Additive(kept, response[:, places], tuple(moves), tuple(places))
    raise UnsupportedError(DEPENDS)


def _candidates(
    run: Run, noises: Sequence[Noise], base: FloatArray, secure: bool, hint: Additive | None
) -> Iterator[FloatArray]:
    """The cheap guess first."""
    if hint is not None and sorted(hint.noises, key=repr) == sorted(noises, key=repr):
        # Columns in the order of these draws: those of one noise keep their order.
        columns: dict[Noise, list[int]] = {}
        for index, noise in enumerate(hint.noises):
            columns.setdefault(noise, []).append(index)
        waiting = {noise: iter(found) for noise, found in columns.items()}
        response = np.zeros((base.size, len(noises)))
        order = [next(waiting[noise]) for noise in noises]
        response[: len(hint.response)] = hint.response[:, order]
        yield response
    if all(noise.largest is None for noise in noises):  # powers of two can occur
        yield _packed(run, noises, base, secure)
    yield _impulses(run, noises, base, secure)


def _packed(run: Run, noises: Sequence[Noise], base: FloatArray, secure: bool) -> FloatArray:
    """Columns of zeros and ones, from the digits of sums of powers of two."""
    response = np.zeros((base.size, len(noises)))
    for first in range(0, len(noises), _PACKED):
        last = min(first + _PACKED, len(noises))
        values = np.zeros(last, np.int64)
        values[first:] = 1 << np.arange(last - first)
        seen = np.rint(run(PresetSampler(values, secure)) - base).astype(np.int64)
        response[:, first:last] = seen[:, None] >> np.arange(last - first) & 1
    return response


def _impulses(run: Run, noises: Sequence[Noise], base: FloatArray, secure: bool) -> FloatArray:
    columns = []
    for index, noise in enumerate(noises):
        if noise.largest is not None:
            height = max(1, noise.largest)
        else:  # so high that shifts of noise of very many steps are found to the single step
            fine = 0 if noise.exact else 1 << math.ceil(math.log2(noise.scale)) + 14
            height = max(_HEIGHT, fine)
        values = np.zeros(index + 1, np.int64)
        values[index] = height
        columns.append((run(PresetSampler(values, secure)) - base) / height)
    response = np.array(columns).T.reshape(base.size, len(noises))
    # Whole numbers, where rounding by the mechanism or by division left almost whole ones.
    whole = np.rint(response)
    almost = (whole != 0) & (np.abs(response - whole) < 1 / _HEIGHT)
    return np.where(almost, whole, response)


def _predicts(
    path: Path,
    noises: tuple[Noise, ...],
    base: FloatArray,
    response: FloatArray,
    moves: Sequence[FloatArray],
    secure: bool,
) -> bool:
    """Noise must enter in the same way, and have the same distributions, whatever the data."""
    rng = np.random.default_rng(1)
    # Unbounded noise may be averaged and rounded to integers; bits are what they are, but few.
    unbounded = all(noise.largest is None for noise in noises)
    slack, times = (_ROUNDED, 1) if unbounded else (1e-6, 16)
    worlds = [(path.base, 0 * base), *zip(path.neighbours.values(), moves, strict=True)]
    some = worlds[:: max(1, len(worlds) // 4)]
    for run, move in worlds + some * (times - 1):  # every one of them at least once
        draws = random_draws(noises, rng, 10**6)
        sampler = PresetSampler(draws, secure)
        expected = base + move + response @ draws
        error = np.abs(run(sampler) - expected)
        if (error > slack + 1e-9 * np.abs(expected)).any() or tuple(sampler.noises) != noises:
            return False
    return True


def random_draws(noises: Sequence[Noise], rng: np.random.Generator, reach: int) -> IntArray:
    """Draws that can occur, up to ``reach`` in size, or more where noise has many steps."""
    steps = [reach if noise.exact else 64 * math.ceil(noise.scale) for noise in noises]
    free = rng.integers(-np.array(steps, np.int64), np.array(steps, np.int64) + 1)
    limits = np.array([-1 if noise.largest is None else noise.largest for noise in noises])
    return np.where(limits < 0, free, rng.integers(0, np.maximum(limits, 0) + 1))


def _merged(noises: tuple[Noise, ...], response: FloatArray) -> tuple[tuple[Noise, ...], list[int]]:
    """Bounded draws that always come in one sum are one noise, in the place of the first.

    A sum of binomials has more trials, a sum of others more copies.
    """
    groups: dict[object, list[int]] = {}
    for index, noise in enumerate(noises):
        together = noise.largest is not None
        key = (response[:, index].tobytes(), replace(noise, trials=0)) if together else index
        groups.setdefault(key, []).append(index)
    kept = []
    for members in groups.values():
        several, first = [noises[index] for index in members], noises[members[0]]
        if first.kind == "binomial":
            kept.append(replace(first, trials=sum(noise.trials for noise in several)))
        else:
            kept.append(replace(first, copies=sum(noise.copies for noise in several)))
    return tuple(kept), [members[0] for members in groups.values()]


# Data traded against noise.


def trades(path: Path, seen: Additive, *, secure: bool = False) -> bool:
    """Whether data and noise can be traded against each other without changing a single bit."""
    world = _World(path.base, seen, secure)
    base = world(np.zeros(len(seen.noises), np.int64))
    tempting = _tempting_draws(seen, base)[: None if path.thorough else 2]
    watched = _NEIGHBOURS if path.thorough else 2
    runs = list(enumerate(path.neighbours.values()))
    chosen = runs[:: max(1, -(-len(runs) // watched))]
    others = {index: _World(run, seen, secure) for index, run in chosen}
    if path.blocks:
        # Noise drawn ahead cannot know the data; the sum with counts must be exact. All values lie
        # on a dyadic grid, counts are whole: low-order bits are those of the noise alone.
        return all(
            _whole(seen.moves[i])
            and np.array_equal(other(z) - world(z), seen.moves[i])
            and _whole(world(z) / _GRID)
            for i, other in others.items()
            for z in tempting
        )
    noisy = np.abs(seen.response).any(axis=1)
    if all(_whole(each(z)[noisy]) for each in (world, *others.values()) for z in tempting):
        return True
    return all(_agree(world, other, index, tempting) for index, other in others.items())


def _whole(values: FloatArray) -> bool:
    return bool(np.array_equal(values, np.rint(values)))


@dataclass(frozen=True, eq=False)
class _World:
    """What one data set publishes, as a function of the draws."""

    run: Run
    seen: Additive
    secure: bool

    def __call__(self, draws: IntArray) -> FloatArray:
        places = np.array(self.seen.places, np.int64)
        values = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
        values[places] = draws
        return self.run(PresetSampler(values, self.secure))


def _agree(one: _World, other: _World, index: int, draws: IntArray) -> bool:
    shifts = one.seen.integer_shifts(index)
    if shifts is not None and _equal(one, other, draws, shifts):
        return True
    measured = _measured(one, other, index)
    return measured is not None and _equal(one, other, draws, measured)


def _equal(one: _World, other: _World, draws: IntArray, shifts: IntArray) -> bool:
    """Other data with draws z, and this data with z + c, bit by bit."""
    limits = np.array([-1 if noise.largest is None else noise.largest for noise in one.seen.noises])
    inside = np.where(limits < 0, draws, np.clip(draws, -np.minimum(shifts, 0), None))
    inside = np.where(limits < 0, inside, np.minimum(inside, limits - np.maximum(shifts, 0)))
    return all(np.array_equal(other(z), one(z + shifts)) for z in inside)


def _tempting_draws(seen: Additive, base: FloatArray) -> IntArray:
    """Half of the draws bring outputs near zero, where floating-point numbers are finest."""
    rng = np.random.default_rng(0)
    draws = np.array([random_draws(seen.noises, rng, 99) for _ in range(2 * _TRIALS)])
    cancel = np.rint(np.linalg.lstsq(seen.response, -base, rcond=1e-12)[0]).astype(np.int64)
    free = np.array([noise.largest is None for noise in seen.noises], np.bool_)
    draws[::2, free] = (cancel + draws[::2] // 25)[:, free]
    return draws.reshape(2 * _TRIALS, len(seen.noises))


def _measured(one: _World, other: _World, index: int) -> IntArray | None:
    """The integers c, from the draws at which outputs jump in both worlds; None if there are none.

    Draws are taken in the order of the outputs in which they first show; those that show first in
    the same release are measured together.
    """
    guess = one.seen.shifts(index)
    if guess is None or not one.seen.one_to_one:
        return None
    sizes = np.abs(one.seen.response)
    shows: BoolArray = sizes > 1e-6 * sizes.max(axis=0)  # which draws show in which outputs
    pivots = np.argmax(shows, axis=0)
    if len(set(pivots.tolist())) < len(pivots):
        return None
    shifts = np.rint(guess).astype(np.int64)
    start = np.random.default_rng(2).integers(-99, 100, len(pivots))
    for group in _groups(shows, pivots):
        jump = _Jump(other, start, pivots[group], group)
        there = jump.after(jump.level(start[group]), start[group])
        level = jump.level(there)
        here = _Jump(one, start + shifts, pivots[group], group)
        shifts[group] = here.reaching(level, there + shifts[group]) - there
    return shifts


def _groups(shows: BoolArray, pivots: IntArray) -> list[IntArray]:
    """Draws in the order of their pivots, together as long as they do not disturb each other."""
    groups: list[list[int]] = []
    for draw in np.argsort(pivots):
        if not groups or shows[pivots[draw], groups[-1]].any():
            groups.append([])
        groups[-1].append(int(draw))
    return [np.array(group) for group in groups]


@dataclass(frozen=True, eq=False)
class _Jump:
    """Outputs ``pivots`` of a world as functions of the draws ``group``, the others fixed."""

    world: _World
    draws: IntArray
    pivots: IntArray
    group: IntArray

    def level(self, values: IntArray) -> FloatArray:
        """The outputs when the group draws these."""
        draws = self.draws.copy()
        draws[self.group] = values
        outputs: FloatArray = self.world(draws)[self.pivots]
        return outputs

    def after(self, level: FloatArray, start: IntArray) -> IntArray:
        """The least draws whose outputs lie above ``level``."""
        return self._least(lambda seen: seen > level, start, start + 1)

    def reaching(self, level: FloatArray, guess: IntArray) -> IntArray:
        """The least draws whose outputs are at least ``level``, near a guess."""
        return self._least(lambda seen: seen >= level, guess - _FIRST, guess + _FIRST)

    def _least(
        self, holds: Callable[[FloatArray], BoolArray], low: IntArray, high: IntArray
    ) -> IntArray:
        """Bisection, all draws at once; outputs grow with their own draw."""
        low, high, width = low.copy(), high.copy(), 1
        while width < 1 << 50 and not (up := holds(self.level(high))).all():
            high, width = np.where(up, high, high + width), 2 * width
        width = 1
        while width < 1 << 50 and (down := holds(self.level(low))).any():
            low, width = np.where(down, low - width, low), 2 * width
        while (high - low > 1).any():
            middle = (low + high) // 2
            found = holds(self.level(middle))
            low, high = np.where(found, low, middle), np.where(found, middle, high)
        return high
