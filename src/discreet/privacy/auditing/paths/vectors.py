"""Streams of named vectors, dense ones (a loss for everything) and sparse ones (what was seen)."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.privacy.auditing.paths.path import Path
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.vectors import VectorMechanism

ADD, BLOCK = "VectorRelease.add", "VectorRelease.noise_block"
_WATCH = 6


def vector_paths(plan: VectorMechanism, watch: int = _WATCH) -> Iterator[Path]:
    """Both ways through a plan, with any one of the users replaced by one as far as can be."""
    watch = min(watch, plan.episodes)
    usual, others = furthest(plan)
    for name, way in WAYS.items():
        worlds = {
            f"{label}, user {place + 1}": _world(plan, way, usual, other, place, watch)
            for label, other in others.items()
            for place in range(watch)
        }
        base = _world(plan, way, usual, usual, 0, watch)
        yield Path(
            name,
            "vector",
            base,
            worlds,
            releases=watch,
            cells=plan.cells,
            note=_note(plan),
            blocks=name == BLOCK,
        )


def _note(plan: VectorMechanism) -> str:
    pile = f", {plan.reach.pile} in one cell" if plan.reach.pile > 1 else ""
    return f"reach {plan.reach.units}{pile}"


def furthest(plan: VectorMechanism) -> tuple[IntArray, dict[str, IntArray]]:
    """A user's vector, and others as far from it as the plan's reach allows, or almost as near.

    Where one user may fill everything the neighbours are full and empty; where the reach is half
    up and half down they fill different cells.
    """
    cells, pile, units = plan.cells, plan.reach.pile, plan.reach.units
    empty = np.zeros(cells, np.int64)
    if pile * cells <= units:
        return np.full(cells, pile), {"everything": empty, "one cell only": _but_last(cells, pile)}
    half = units // 2
    first, last = _filled(cells, pile, half), _filled(cells, pile, half)[::-1].copy()
    return first, {"everything": last, "nothing": empty}


def _but_last(cells: int, pile: int) -> IntArray:
    user = np.full(cells, pile)
    user[-1] = 0
    return user


def _filled(cells: int, pile: int, total: int) -> IntArray:
    """Cells filled one after the other, ``pile`` each."""
    return np.clip(total - pile * np.arange(cells), 0, pile)


_Way = Callable[[VectorMechanism, Sequence[IntArray], Sampler], FloatArray]


def _add(plan: VectorMechanism, users: Sequence[IntArray], sampler: Sampler) -> FloatArray:
    stream = plan.open(sampler)
    return np.concatenate(
        [part for user in users for part in stream.add(plan.split(user)).values()]
    )


def _block(plan: VectorMechanism, users: Sequence[IntArray], sampler: Sampler) -> FloatArray:
    """As documented: the caller adds the true cumulative values."""
    noise = plan.open(sampler).noise_block(len(users))
    public: FloatArray = (noise + np.cumsum(users, axis=0)).ravel()
    return public


WAYS: dict[str, _Way] = {ADD: _add, BLOCK: _block}


def _world(
    plan: VectorMechanism, way: _Way, usual: IntArray, other: IntArray, place: int, watch: int
) -> Callable[[Sampler], FloatArray]:
    users = [other if k == place else usual for k in range(watch)]
    return lambda sampler: way(plan, users, sampler)
