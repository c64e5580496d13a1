"""The roster of learners. A new learner is one file and one line in ``_MODULES``."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

if TYPE_CHECKING:
    from discreet.learners.base import BatchLearner, StreamLearner
    from discreet.learners.result import Result
    from discreet.learners.settings import Settings

from discreet.errors import InvalidInputError, UnknownNameError

_MODULES: dict[str, str] = {
    "dp-ucbvi": "discreet.learners.streams.ucbvi",
    "ldp-obi": "discreet.learners.streams.ldp_obi",
    "ldp-psrl": "discreet.learners.streams.psrl",
    "private-uc-o-reps": "discreet.learners.adversarial.uc_o_reps",
    "private-ucb-po": "discreet.learners.streams.private_ucb",
    "private-ucb-vi": "discreet.learners.streams.private_ucb",
    "private-uob-lbps": "discreet.learners.adversarial.uob_lbps",
    "psrl": "discreet.learners.streams.psrl",
    "pucb": "discreet.learners.streams.private_ucb",
    "ucbvi": "discreet.learners.streams.ucbvi",
    "pe": "discreet.learners.elimination.learner",
    "sdp-pe": "discreet.learners.elimination.learner",
    "etc": "discreet.learners.etc.learner",
    "flow-ucb": "discreet.learners.flow_ucb.learner",
}
"""Learner name -> module that defines its ``LearnerSpec`` in ``SPECS``."""


class RegretBound(NamedTuple):
    """What is proven about a learner's regret.

    Attributes:
        text: as a person reads it.
        shape: up to constants, as a function of (S, A, H, K, epsilon), or None.
    """

    text: str
    shape: Callable[[int, int, int, float, float], float] | None = None


NONE_PROVEN = RegretBound("none proven")


@dataclass(frozen=True)
class LearnerSpec:
    """One line of the roster.

    Attributes:
        name: what ``learner=`` takes.
        summary: one line for `discreet list`.
        paper: where it comes from, or "ours".
        rhythm: ``"batch"``, ``"stream"`` or ``"adversarial"``.
        trusts: names of the trust models it can use.
        bound: its regret bound as text, or "none proven".
        bound_shape: the bound up to constants as a function of (S, A, H, K, epsilon), or None.
        make: batch and stream learners: the class, a `BatchLearner` or a `StreamLearner`.
        run: instead of ``make`` a whole run: ``(mdp, trust, episodes, seeds, **settings) ->
            Result`` (adversarial learners; any rhythm may).
        settings: what may be set, where the class does not say.
        run_lockstep: many runs at once: ``(mdps, trust, episodes, [seeds], **settings) ->
            [Result]``; a run must not depend on which others go along.
    """

    name: str
    summary: str
    paper: str
    rhythm: Literal["batch", "stream", "adversarial"]
    trusts: tuple[str, ...]
    bound: str = NONE_PROVEN.text
    bound_shape: Callable[[int, int, int, float, float], float] | None = None
    make: "type[BatchLearner] | type[StreamLearner] | None" = None
    run: "Callable[..., Result] | None" = None
    run_lockstep: "Callable[..., list[Result]] | None" = None
    settings: "type[Settings] | None" = None

    @classmethod
    def of_stream(
        cls,
        make: "type[StreamLearner]",
        *,
        paper: str,
        bound: RegretBound = NONE_PROVEN,
        trusts: tuple[str, ...] = ("none", "central", "local"),
        run_lockstep: "Callable[..., list[Result]] | None" = None,
    ) -> Self:
        """The line of a stream learner, whose class knows its name and its summary."""
        return cls(
            name=make.name,
            summary=make.summary,
            paper=paper,
            rhythm="stream",
            trusts=trusts,
            bound=bound.text,
            bound_shape=bound.shape,
            make=make,
            run_lockstep=run_lockstep,
        )

    @property
    def settings_type(self) -> "type[Settings] | None":
        """The learner's settings; None where it takes keywords that it does not declare."""
        return self.settings if self.make is None else self.make.settings_type


def by_name(*specs: LearnerSpec) -> dict[str, LearnerSpec]:
    """The ``SPECS`` of a module."""
    return {spec.name: spec for spec in specs}


_REGISTERED: dict[str, LearnerSpec] = {}
"""Learners that a user registered in this process."""


def register(spec: LearnerSpec) -> None:
    """Add a learner of your own to the roster of this process."""
    if spec.name in _MODULES:
        raise InvalidInputError(
            f"Expected a new learner name, got {spec.name!r}, which discreet ships; choose another."
        )
    _REGISTERED[spec.name] = spec


def learner_names() -> list[str]:
    """All registered names."""
    return sorted({*_MODULES, *_REGISTERED})


def get_learner(name: str) -> LearnerSpec:
    """The specification of one learner, or an error with a suggestion."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _MODULES:
        raise UnknownNameError("learner", name, learner_names())
    specs: dict[str, LearnerSpec] = importlib.import_module(_MODULES[name]).SPECS
    return specs[name]
