"""The registry of learners.

A new learner of ours is one file and one line in ``_SHIPPED``; one of yours is registered with
`register`, or is an entry point ``discreet.learners`` of a package.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from discreet.learners.base import BatchLearner, ContinualLearner, FlowLearner
    from discreet.learners.result import Result
    from discreet.learners.settings import Settings

from discreet import _registry
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.papers.bounds import RegretBound, bounds_of

CONTINUAL = ("none", "central", "local")
"""What continual learners can use, unless they say otherwise."""
BATCH = ("shuffle", "central", "local", "none")

_SHIPPED = {
    "dp-ucbvi": "learners.optimists",
    "explore-then-commit": "learners.explore_then_commit",
    "flow-ucb": "learners.flow_ucb.learner",
    "ldp-obi": "learners.ldp_obi",
    "ldp-psrl": "learners.psrl",
    "pe": "learners.elimination.learner",
    "private-uc-o-reps": "adversarial.uc_o_reps",
    "private-ucb-po": "learners.optimists",
    "private-ucb-vi": "learners.optimists",
    "private-uob-lbps": "adversarial.uob_lbps",
    "psrl": "learners.psrl",
    "pucb": "learners.optimists",
    "sdp-pe": "learners.elimination.learner",
    "trial": "learners.trial",
    "ucbvi": "learners.optimists",
}
"""Where each learner of discreet is: the module with it in its ``SPECS``."""


@dataclass(frozen=True)
class LearnerSpec:
    """One learner of the registry.

    Attributes:
        name: what ``learner=`` takes.
        summary: one line for `discreet list`.
        paper: where it comes from, or "ours".
        schedule: ``"batch"``, ``"continual"`` or ``"adversarial"``.
        trusts: names of the trust models it can use.
        own_bounds: trust model -> what is proven about its regret, for a learner of yours; those of
            the papers are in `discreet.papers.bounds`.
        make: batch and continual learners: the class, a `BatchLearner` or a `ContinualLearner`.
        run: instead of ``make`` a whole run: ``(mdp, trust, episodes, seeds, **settings) ->
            Result`` (adversarial learners; any schedule may).
        settings: what may be set, where the class does not say.
    """

    name: str
    summary: str
    paper: str
    schedule: Literal["batch", "continual", "adversarial"]
    trusts: tuple[str, ...]
    own_bounds: Mapping[str, RegretBound] = field(default_factory=dict)
    make: "type[BatchLearner] | type[ContinualLearner] | None" = None
    run: "Callable[..., Result] | None" = None
    settings: "type[Settings] | None" = None

    @classmethod
    def of_continual(
        cls,
        make: "type[ContinualLearner]",
        *,
        paper: str,
        own_bounds: Mapping[str, RegretBound] | None = None,
        trusts: tuple[str, ...] = CONTINUAL,
    ) -> Self:
        """Of a continual learner, whose class knows its name and its summary."""
        bounds = own_bounds or {}
        return cls(make.name, make.summary, paper, "continual", trusts, bounds, make)

    @classmethod
    def of_batch(
        cls, make: "type[FlowLearner[Settings]]", *, paper: str, trusts: tuple[str, ...] = BATCH
    ) -> Self:
        """Of a batch learner, likewise."""
        return cls(make.name, make.summary, paper, "batch", trusts, make=make)

    @property
    def bounds(self) -> Mapping[str, RegretBound]:
        """Trust model -> what is proven about its regret, for the printed constants."""
        return self.own_bounds or bounds_of(self.name)

    @property
    def bound(self) -> str:
        """The same in words."""
        said = [f"{trust}: {bound.text}" for trust, bound in self.bounds.items()]
        return "; ".join(said) or "none proven"

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
    """Add a learner of your own, in this process."""
    if spec.name in _SHIPPED:
        raise InvalidInputError(
            f"Expected a new learner name, got {spec.name!r}, which discreet ships; choose another."
        )
    _REGISTERED[spec.name] = spec


def learner_names() -> list[str]:
    """All registered names."""
    return sorted({*_SHIPPED, *_REGISTERED, *_registry.entry_points("learners")})


def listing(name: str) -> LearnerSpec:
    """What `discreet list` says of a learner; one broken plug-in does not hide all others."""
    try:
        return get_learner(name)
    except InvalidInputError:
        return LearnerSpec(name, "(not available)", "", "batch", ())


def get_learner(name: str) -> LearnerSpec:
    """The specification of one learner, or an error with a suggestion."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _SHIPPED:
        if name not in _registry.entry_points("learners"):
            raise UnknownNameError("learner", name, learner_names())
        spec = _registry.load("learners", name)
        if not isinstance(spec, LearnerSpec) or spec.name != name:
            raise InvalidInputError(
                f"Expected the entry point {name!r} of discreet.learners to be a LearnerSpec of "
                f"that name, got {spec!r}."
            )
        return spec
    module = importlib.import_module(f"discreet.{_SHIPPED[name]}")
    specs: dict[str, LearnerSpec] = module.SPECS
    return specs[name]


def spec_of_settings(kind: "type[Settings]") -> LearnerSpec:
    """The learner that has settings of this kind (of policy elimination: `sdp-pe`)."""
    for name in reversed(learner_names()):
        spec = get_learner(name)
        if spec.settings_type is kind:
            return spec
    raise InvalidInputError(
        f"Expected settings of a registered learner, got a {kind.__name__}; pass the class of the "
        f"learner, and its settings as keywords."
    )


def spec_of_class(kind: "type[BatchLearner] | type[ContinualLearner]") -> LearnerSpec:
    """Of a class as it is: a registered one has its own, another takes what its schedule takes."""
    from discreet.learners.base import BatchLearner

    known = getattr(sys.modules[kind.__module__], "SPECS", {}).values()
    for spec in (*known, *_REGISTERED.values()):
        if spec.make is kind:
            found: LearnerSpec = spec
            return found
    name, summary = getattr(kind, "name", kind.__name__), getattr(kind, "summary", "")
    if issubclass(kind, BatchLearner):
        return LearnerSpec(name, summary, "ours", "batch", BATCH, make=kind)
    return LearnerSpec(name, summary, "ours", "continual", CONTINUAL, make=kind)
