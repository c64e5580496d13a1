"""Data traded against noise: what is published may depend on their sum alone, to the last bit.

Data d' with draws z and data d with draws z + c must give bit-equal outputs when B·c = d' - d.
Where the sum was taken in floating point the last bits differ, and tell d and d' apart. Integer
outputs pass as they are. (Blocks of noise are drawn ahead and added to true counts by the caller:
of them it is asked that the sum be exact, on a dyadic grid, whatever the count.)

The integers c follow from B where it is well conditioned. Where a release is rounded to a coarser
grid than its noise (a Toeplitz stream), they are *measured*: as a draw grows, the output jumps from
one value of its grid to the next, in both worlds; the draws at which it jumps differ by c. If what
is published is a function of data plus noise, then c does not depend on where it was measured:
other draws, moved by the same c, agree to the last bit too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.privacy.auditing.linear import Additive
from discreet.privacy.auditing.paths.path import Path, Run
from discreet.privacy.auditing.probes import PresetSampler
from discreet.privacy.auditing.probing import random_draws

_TRIALS = 2
_NEIGHBOURS = 3
_FIRST = 1 << 10
_GRID = 2.0**-30
"""Finer than every grid on which blocks are handed out."""


def trades(path: Path, seen: Additive, *, secure: bool = False) -> bool:
    """Whether data and noise can be traded against each other without changing a single bit."""
    world = _World(path.base, seen, secure)
    tempting = _tempting_draws(seen, world(world.none))[: None if path.thorough else 2]
    watched = _NEIGHBOURS if path.thorough else 2
    runs = list(enumerate(path.neighbours.values()))
    chosen = runs[:: max(1, -(-len(runs) // watched))]
    others = {index: _World(run, seen, secure) for index, run in chosen}
    if path.blocks:
        return all(_apart(world, other, seen.moves[i], tempting) for i, other in others.items())
    noisy = np.abs(seen.response).any(axis=1)
    if all(_whole(each(z)[noisy]) for each in (world, *others.values()) for z in tempting):
        return True
    return all(_agree(world, other, index, tempting) for index, other in others.items())


def _whole(values: FloatArray) -> bool:
    return bool(np.array_equal(values, np.rint(values)))


def _apart(one: "_World", other: "_World", move: FloatArray, draws: IntArray) -> bool:
    """Noise drawn ahead cannot know the data; the sum with counts must be exact.

    All values lie on a dyadic grid, counts are whole: low-order bits are those of the noise alone.
    """
    return _whole(move) and all(
        np.array_equal(other(z) - one(z), move) and _whole(one(z) / _GRID) for z in draws
    )


@dataclass(frozen=True, eq=False)
class _World:
    """What one data set publishes, as a function of the laws' draws."""

    run: Run
    seen: Additive
    secure: bool

    def __call__(self, draws: IntArray) -> FloatArray:
        places = np.array(self.seen.places, np.int64)
        values = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
        values[places] = draws
        return self.run(PresetSampler(values, self.secure))

    @property
    def none(self) -> IntArray:
        return np.zeros(len(self.seen.laws), np.int64)


def _agree(one: _World, other: _World, index: int, draws: IntArray) -> bool:
    shifts = one.seen.integer_shifts(index)
    if shifts is not None and _equal(one, other, draws, shifts):
        return True
    measured = _measured(one, other, index)
    return measured is not None and _equal(one, other, draws, measured)


def _equal(one: _World, other: _World, draws: IntArray, shifts: IntArray) -> bool:
    """Other data with draws z, and this data with z + c, bit by bit."""
    limits = np.array([-1 if law.largest is None else law.largest for law in one.seen.laws])
    inside = np.where(limits < 0, draws, np.clip(draws, -np.minimum(shifts, 0), None))
    inside = np.where(limits < 0, inside, np.minimum(inside, limits - np.maximum(shifts, 0)))
    return all(np.array_equal(other(z), one(z + shifts)) for z in inside)


def _tempting_draws(seen: Additive, base: FloatArray) -> IntArray:
    """Half of the draws bring outputs near zero, where floating-point numbers are finest."""
    rng = np.random.default_rng(0)
    draws = np.array([random_draws(seen.laws, rng, 99) for _ in range(2 * _TRIALS)])
    cancel = np.rint(np.linalg.lstsq(seen.response, -base, rcond=1e-12)[0]).astype(np.int64)
    free = np.array([law.largest is None for law in seen.laws], np.bool_)
    draws[::2, free] = (cancel + draws[::2] // 25)[:, free]
    return draws.reshape(2 * _TRIALS, len(seen.laws))


def _measured(one: _World, other: _World, index: int) -> IntArray | None:
    """The integers c, from the draws at which outputs jump in both worlds; None if there are none.

    Draws are taken in the order of the outputs in which they first show; those that show first in
    the same release are measured together.
    """
    guess = one.seen.shifts(index)
    if guess is None or not one.seen.one_to_one:
        return None
    shows = _shows(one.seen)
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


def _shows(seen: Additive) -> BoolArray:
    """Which draws show in which outputs."""
    sizes = np.abs(seen.response)
    shows: BoolArray = sizes > 1e-6 * sizes.max(axis=0)
    return shows


def _groups(shows: BoolArray, pivots: IntArray) -> list[IntArray]:
    """IntArray in the order of their pivots, together as long as they do not disturb each other."""
    groups: list[list[int]] = []
    for draw in np.argsort(pivots):
        last = groups[-1] if groups else []
        alone = not last or shows[pivots[draw], last].any()
        if alone:
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
