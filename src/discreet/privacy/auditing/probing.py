"""How draws enter what is published, read off the real code path as a matrix.

Where every draw is added as it is (one-shot noise, trees), draws are probed thirty at a time: draw
number k is 2^k, and the binary digits of what is published say which of them are in it. Otherwise
each draw gets an impulse of its own. Either way the matrix has to predict what random draws give,
on the data set and on its neighbours.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.privacy.auditing.linear import Additive
from discreet.privacy.auditing.paths.path import Path, Run
from discreet.privacy.auditing.probes import Law, PresetSampler

_HEIGHT = 1 << 44
"""Of impulses: high, so that the grid on which a mechanism releases does not matter."""
_PACKED = 30
_ROUNDED = 2.0
"""What is released may be rounded to integers, in both of two runs that are compared."""


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
    laws = tuple(still.laws)
    if any(law.kind == "scatter" for law in laws):
        raise UnsupportedError("Cells that share their noise are no counters with noise added.")
    if _bent(path.base, laws, base, secure):
        raise UnsupportedError(DEPENDS)
    moves = []
    for run in path.neighbours.values():
        sampler = PresetSampler.still(secure=secure)
        moves.append(_moved(run(sampler), base))
        if tuple(sampler.laws) != laws:
            raise UnsupportedError(DEPENDS)
    for response in _candidates(path.base, laws, base, secure, hint):
        if _predicts(path, laws, base, response, moves, secure):
            break
    else:
        raise UnsupportedError(DEPENDS)
    kept, places = _merged(laws, response)
    return Additive(kept, response[:, places], tuple(moves), tuple(places))


def _bent(run: Run, laws: Sequence[Law], base: FloatArray, secure: bool) -> bool:
    """Whether a first draw of several values does not enter as a number: it names a place."""
    index = next((i for i, law in enumerate(laws) if law.kind == "table"), None)
    if index is None or (laws[index].largest or 0) < 2:
        return False
    one, two = (
        run(PresetSampler(np.r_[np.zeros(index, np.int64), value], secure)) - base
        for value in (1, 2)
    )
    return bool((np.abs(two - 2 * one) > 1e-6).any())


def _candidates(
    run: Run, laws: Sequence[Law], base: FloatArray, secure: bool, hint: Additive | None
) -> Iterator[FloatArray]:
    """The cheap guess first."""
    if hint is not None and sorted(hint.laws, key=repr) == sorted(laws, key=repr):
        yield _reordered(hint, laws, base.size)
    if all(law.largest is None for law in laws):  # powers of two can occur
        yield _packed(run, laws, base, secure)
    yield _impulses(run, laws, base, secure)


def _reordered(hint: Additive, laws: Sequence[Law], outputs: int) -> FloatArray:
    """Columns in the order of these draws: those of one law come in the same order in both."""
    columns: dict[Law, list[int]] = {}
    for index, law in enumerate(hint.laws):
        columns.setdefault(law, []).append(index)
    waiting = {law: iter(found) for law, found in columns.items()}
    response = np.zeros((outputs, len(laws)))
    response[: len(hint.response)] = hint.response[:, [next(waiting[law]) for law in laws]]
    return response


DEPENDS = "The noise of this release depends on the data it hides."


def _moved(there: FloatArray, here: FloatArray) -> FloatArray:
    if there.shape != here.shape:
        raise UnsupportedError("The size of what is published depends on the data.")
    return there - here


def _packed(run: Run, laws: Sequence[Law], base: FloatArray, secure: bool) -> FloatArray:
    """Columns of zeros and ones, from the digits of sums of powers of two."""
    response = np.zeros((base.size, len(laws)))
    for first in range(0, len(laws), _PACKED):
        last = min(first + _PACKED, len(laws))
        values = np.zeros(last, np.int64)
        values[first:] = 1 << np.arange(last - first)
        seen = np.rint(run(PresetSampler(values, secure)) - base).astype(np.int64)
        response[:, first:last] = seen[:, None] >> np.arange(last - first) & 1
    return response


def _impulses(run: Run, laws: Sequence[Law], base: FloatArray, secure: bool) -> FloatArray:
    columns = []
    for index, law in enumerate(laws):
        height = _height(law)
        values = np.zeros(index + 1, np.int64)
        values[index] = height
        columns.append((run(PresetSampler(values, secure)) - base) / height)
    return _tidy(np.array(columns).T.reshape(base.size, len(laws)))


def _height(law: Law) -> int:
    """So high that shifts of noise of very many steps are found to the single step."""
    if law.largest is not None:
        return max(1, law.largest)
    return _HEIGHT if law.exact else max(_HEIGHT, 1 << math.ceil(math.log2(law.scale)) + 14)


def _tidy(response: FloatArray) -> FloatArray:
    """Whole numbers, where rounding by the mechanism or by division left almost whole ones."""
    whole = np.rint(response)
    almost = (whole != 0) & (np.abs(response - whole) < 1 / _HEIGHT)
    return np.where(almost, whole, response)


def _predicts(
    path: Path,
    laws: tuple[Law, ...],
    base: FloatArray,
    response: FloatArray,
    moves: Sequence[FloatArray],
    secure: bool,
) -> bool:
    """Noise must enter in the same way, and be drawn from the same laws, whatever the data."""
    rng = np.random.default_rng(1)
    # Unbounded noise may be averaged and rounded to integers; bits are what they are, but few.
    unbounded = all(law.largest is None for law in laws)
    slack, times = (_ROUNDED, 1) if unbounded else (1e-6, 16)
    worlds = [(path.base, 0 * base), *zip(path.neighbours.values(), moves, strict=True)]
    some = worlds[:: max(1, len(worlds) // 4)]
    for run, move in worlds + some * (times - 1):  # every one of them at least once
        draws = random_draws(laws, rng, 10**6)
        sampler = PresetSampler(draws, secure)
        expected = base + move + response @ draws
        error = np.abs(run(sampler) - expected)
        if (error > slack + 1e-9 * np.abs(expected)).any() or tuple(sampler.laws) != laws:
            return False
    return True


def random_draws(laws: Sequence[Law], rng: np.random.Generator, reach: int) -> IntArray:
    """Draws that can occur, up to ``reach`` in size, or more where noise has many steps."""
    steps = [reach if law.exact else 64 * math.ceil(law.scale) for law in laws]
    free = rng.integers(-np.array(steps, np.int64), np.array(steps, np.int64) + 1)
    limits = np.array([-1 if law.largest is None else law.largest for law in laws])
    return np.where(limits < 0, free, rng.integers(0, np.maximum(limits, 0) + 1))


def _merged(laws: tuple[Law, ...], response: FloatArray) -> tuple[tuple[Law, ...], list[int]]:
    """Bounded draws that always come in one sum are one law, in the place of the first of them."""
    groups: dict[object, list[int]] = {}
    for index, law in enumerate(laws):
        together = law.largest is not None
        key = (response[:, index].tobytes(), replace(law, trials=0)) if together else index
        groups.setdefault(key, []).append(index)
    kept = [_sum_of([laws[index] for index in members]) for members in groups.values()]
    return tuple(kept), [members[0] for members in groups.values()]


def _sum_of(laws: list[Law]) -> Law:
    """Independent draws of one law, added up: more trials of a binomial, more copies of others."""
    if len(laws) == 1:
        return laws[0]
    if laws[0].kind == "binomial":
        return replace(laws[0], trials=sum(law.trials for law in laws))
    return replace(laws[0], copies=sum(law.copies for law in laws))
