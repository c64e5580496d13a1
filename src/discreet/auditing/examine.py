"""One path, examined: what it delivers, and what of it depends on data that must not.

Neighbours are run with the same randomness. Whoever watches may see whether there is a release, how
large it is and how many messages there were; and noise that is drawn for some data only, from
another distribution or in another order, is noise that says something about them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray
from discreet.auditing import additive, categories, pairs
from discreet.auditing.additive import Additive, probe
from discreet.auditing.categories import Categorical
from discreet.auditing.neighbours import EVERYTHING
from discreet.auditing.pairs import View
from discreet.auditing.paths import Path, Run
from discreet.auditing.probes import PresetSampler, ScriptedSampler, TooManyError, outcomes
from discreet.errors import DiscreetError, UnsupportedError

TOLERANCE = 1e-7
"""Relative error allowed to the arithmetic of an audit."""
REFUSED = (
    "An episode that leaves the policy is refused, or another one is: whether there is a release "
    "depends on one user's data."
)
SIZES = "The size of what is published depends on the data."
CALLS = "Which noise is drawn depends on the data that it hides."
LOW_BITS = (
    "Floating-point noise is released: the low-order bits of a release depend on the data beyond "
    "their noisy value."
)
UNUSED = (
    "Secure noise is drawn that does not enter what is published: one release, one draw of each "
    "of its noises, and no choice among several."
)
FORGOTTEN = "Somebody is not counted: all of one user's data are other ones, and nothing changes."
_MOST = 1 << 13
"""Outcomes that are listed, before it takes too long."""


class Outcomes(View):
    """Exact privacy of randomised data: all outcomes of a data set and of its neighbours.

    Outcomes are compared bit by bit: neighbours that publish values of different supports, be it in
    the last digit, have no epsilon at all.
    """

    def __init__(self, path: Path, *, secure: bool = False) -> None:
        if not path.window:
            _check_few(path.base, secure)
        first, last = path.window or (0, 1 << 62)

        def start(script: list[int]) -> ScriptedSampler:
            return ScriptedSampler(script, secure=secure, first=first, last=last)

        def listed(run: Run) -> dict[bytes, float]:
            return outcomes(lambda sampler: run(sampler).tobytes(), _MOST, start)

        self.base = listed(path.base)
        self.others = [listed(run) for run in path.neighbours.values()]

    def curve(self, epsilon: float, delta: float) -> tuple[float, float]:
        both = [[(self.base, other), (other, self.base)] for other in self.others]
        views = [[(pairs.outcomes(*pair), 1)] for ways in both for pair in ways]
        found = max(pairs.exact_epsilon(view, delta) for view in views)
        return found, max(pairs.exact_delta(view, epsilon) for view in views)


def _check_few(run: Run, secure: bool) -> None:
    """Refuse at once what would take too long."""
    sampler = PresetSampler.still(secure=secure)
    try:
        run(sampler)
    except UnsupportedError:  # bits are drawn per unit of data: nobody knows how many
        return
    if any(noise.largest is None for noise in sampler.noises):
        raise UnsupportedError("Noise of infinite support cannot be listed.")
    if math.prod(float(noise.largest or 0) + 1 for noise in sampler.noises) > _MOST:
        raise TooManyError(f"More than {_MOST:,} outcomes; audit a smaller shape.")


@dataclass(frozen=True, eq=False)
class Finding:
    """What one path was seen to do with one kind of sampler.

    Attributes:
        view: its exact privacy, None if it could not be read off.
        problems: what depends on data and must not, in sentences.
        unlisted: why there is no view, though nothing is wrong: too many outcomes.
    """

    path: Path
    secure: bool
    view: Additive | Categorical | Outcomes | None
    problems: tuple[str, ...]
    unlisted: str = ""


def examine(path: Path, *, secure: bool, hint: Additive | None = None) -> Finding:
    """Run the path on neighbours, with every kind of randomness that tells something."""
    problems = list(dict.fromkeys(undisciplined(path, secure=secure)))
    view: Additive | Categorical | Outcomes | None = None
    try:
        view = _view(path, secure, hint)
        fair = True  # listed outcomes were compared bit by bit
        if isinstance(view, Additive):
            if secure and not view.response.any(axis=0).all():
                problems.append(UNUSED)  # simulations may draw ahead
            moves = zip(path.neighbours, view.moves, strict=True)
            if any(label.startswith(EVERYTHING) and not move.any() for label, move in moves):
                problems.append(FORGOTTEN)
            fair = additive.trades(path, view, secure=secure)
        elif isinstance(view, Categorical):
            fair = categories.trades(path, view, secure=secure)
        if not fair:
            problems.append(LOW_BITS)
    except TooManyError as reason:
        return Finding(path, secure, None, tuple(problems), str(reason))
    except UnsupportedError as reason:
        problems.append(str(reason))
    except DiscreetError as reason:
        problems.append(f"It refuses what it should publish: {reason}")
    return Finding(path, secure, view, tuple(problems))


def _view(path: Path, secure: bool, hint: Additive | None) -> Additive | Categorical | Outcomes:
    """Noise that is added, else noise messages that are counted, else outcomes that are listed."""
    if path.window:  # a long run of randomised data
        return Outcomes(path, secure=secure)
    try:
        return probe(path, secure=secure, hint=hint)
    except UnsupportedError as error:
        reason = error
    try:
        return categories.read(path, secure=secure)
    except UnsupportedError:
        pass
    try:
        return Outcomes(path, secure=secure)
    except TooManyError:
        raise
    except UnsupportedError:
        raise reason from None


def undisciplined(path: Path, *, secure: bool = False) -> Iterator[str]:
    """Refusals, sizes and questions to the sampler that depend on data, in sentences."""
    for seed in (0, 1) if path.thorough else (1,):
        published, calls = _watch(path.base, seed, secure)
        for label, run in path.neighbours.items():
            other, asked = _watch(run, seed, secure)
            if (published is None) != (other is None):
                yield f"{REFUSED} ({label})"
            elif published is not None and other is not None:
                if published.shape != other.shape:
                    yield f"{SIZES} ({label})"
                elif calls != asked and not path.simulated:
                    yield f"{CALLS} ({label})"


def _watch(run: Run, seed: int, secure: bool) -> tuple[FloatArray | None, list[tuple[object, ...]]]:
    """What was published (None: refused), and how the sampler was called.

    One run with preset draws, or with scripted ones where data are randomised.
    """
    values = np.random.default_rng(seed).integers(0, 2, 4096) if seed else np.zeros(0, np.int64)
    preset = PresetSampler(values, secure)
    try:
        return run(preset), preset.calls
    except UnsupportedError:  # bits are drawn per unit of data
        scripted = ScriptedSampler(values.tolist(), secure)
        return run(scripted), scripted.calls
    except DiscreetError:
        return None, preset.calls
