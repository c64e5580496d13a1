"""One path, examined: what it delivers, and what of it depends on data that must not."""

from dataclasses import dataclass

from discreet.errors import DiscreetError, UnsupportedError
from discreet.privacy.auditing import categories
from discreet.privacy.auditing.categories import Categorical
from discreet.privacy.auditing.discipline import undisciplined
from discreet.privacy.auditing.linear import Additive
from discreet.privacy.auditing.neighbours import EVERYTHING
from discreet.privacy.auditing.paths.path import Path
from discreet.privacy.auditing.probes import TooManyError
from discreet.privacy.auditing.probing import probe
from discreet.privacy.auditing.reports import Outcomes
from discreet.privacy.auditing.trade import trades

View = Additive | Categorical | Outcomes
TOLERANCE = 1e-7
"""Relative error allowed to the arithmetic of an audit."""
LOW_BITS = (
    "Floating-point noise is released: the low-order bits of a release depend on the data beyond "
    "their noisy value."
)
UNUSED = (
    "Secure noise is drawn that does not enter what is published: one release, one draw of each "
    "of its noises, and no choice among several."
)
FORGOTTEN = "Somebody is not counted: all of one user's data are other ones, and nothing changes."


@dataclass(frozen=True, eq=False)
class Finding:
    """What one path was seen to do with one kind of sampler.

    Attributes:
        path: the path.
        secure: the kind of sampler.
        view: its exact privacy, None if it could not be read off.
        problems: what depends on data and must not, in sentences.
        unlisted: why there is no view, though nothing is wrong: too many outcomes.
    """

    path: Path
    secure: bool
    view: View | None
    problems: tuple[str, ...]
    unlisted: str = ""


def examine(path: Path, *, secure: bool, hint: Additive | None = None) -> Finding:
    """Run the path on neighbours, with every kind of randomness that tells something."""
    problems = list(dict.fromkeys(undisciplined(path, secure=secure)))
    view: View | None = None
    try:
        view = _view(path, secure, hint)
        if isinstance(view, Additive):
            problems += _misused(path, view, secure)
        if not _trades(path, view, secure):
            problems.append(LOW_BITS)
    except TooManyError as reason:
        return Finding(path, secure, None, tuple(problems), str(reason))
    except UnsupportedError as reason:
        problems.append(str(reason))
    except DiscreetError as reason:
        problems.append(f"It refuses what it should publish: {reason}")
    return Finding(path, secure, view, tuple(problems))


def _misused(path: Path, view: Additive, secure: bool) -> list[str]:
    """Noise that is drawn for nothing (simulations may draw ahead), users who are not counted."""
    problems = []
    if secure and not path.ahead and not view.response.any(axis=0).all():
        problems.append(UNUSED)
    moves = zip(path.neighbours, view.moves, strict=True)
    if any(label.startswith(EVERYTHING) and not move.any() for label, move in moves):
        problems.append(FORGOTTEN)
    return problems


def _view(path: Path, secure: bool, hint: Additive | None) -> View:
    if path.window:  # a long stream of randomised data
        return Outcomes(path, secure=secure)
    try:
        return probe(path, secure=secure, hint=hint)
    except UnsupportedError as reason:
        try:
            return _without_matrix(path, secure)
        except TooManyError:
            raise
        except UnsupportedError:
            raise reason from None


def _without_matrix(path: Path, secure: bool) -> Categorical | Outcomes:
    """Noise messages that are counted, or outcomes that are listed."""
    try:
        return categories.read(path, secure=secure)
    except UnsupportedError:
        return Outcomes(path, secure=secure)


def _trades(path: Path, view: View, secure: bool) -> bool:
    """Whether data and noise change places without changing a bit (of listed outcomes: they do)."""
    if isinstance(view, Additive):
        return trades(path, view, secure=secure)
    return isinstance(view, Outcomes) or categories.trades(path, view, secure=secure)
