"""What must not depend on anybody's data: refusals, sizes, and which noise is asked for.

Neighbours are run with the same randomness. Whoever watches may see whether there is a release, how
large it is and how many messages there were; and noise that is drawn for some data only, from
another law or in another order, is noise that says something about them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray
from discreet.errors import DiscreetError, UnsupportedError
from discreet.privacy.auditing.paths.path import Path, Run
from discreet.privacy.auditing.probes import PresetSampler, ScriptedSampler

REFUSED = (
    "An episode that leaves the policy is refused, or another one is: whether there is a release "
    "depends on one user's data."
)
SIZES = "The size of what is published depends on the data."
CALLS = "Which noise is drawn depends on the data that it hides."


@dataclass(frozen=True, eq=False)
class _Seen:
    """A run: what was published (None: refused) and how the sampler was called."""

    published: FloatArray | None
    calls: list[tuple[object, ...]]


def undisciplined(path: Path, *, secure: bool = False) -> Iterator[str]:
    """What of it depends on data, in sentences."""
    for seed in (0, 1) if path.thorough else (1,):
        first = _watch(path.base, seed, secure)
        for label, run in path.neighbours.items():
            other = _watch(run, seed, secure)
            yield from (f"{text} ({label})" for text in _differences(first, other, path))


def _differences(first: _Seen, other: _Seen, path: Path) -> Iterator[str]:
    if (first.published is None) != (other.published is None):
        yield REFUSED
    elif first.published is not None and other.published is not None:
        if first.published.shape != other.published.shape:
            yield SIZES
        elif first.calls != other.calls and not path.simulated:
            yield CALLS


def _watch(run: Run, seed: int, secure: bool) -> _Seen:
    """One run with preset draws, or with scripted ones where data are randomised."""
    values = np.random.default_rng(seed).integers(0, 2, 4096) if seed else np.zeros(0, np.int64)
    preset = PresetSampler(values, secure)
    try:
        return _Seen(run(preset), preset.calls)
    except UnsupportedError:  # bits are drawn per unit of data
        scripted = ScriptedSampler(values.tolist(), secure)
        return _Seen(run(scripted), scripted.calls)
    except DiscreetError:
        return _Seen(None, preset.calls)
