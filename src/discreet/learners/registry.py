"""The registry of learners.

A new learner of ours is one file and one line in ``_SHIPPED``; one of yours is registered with
`register`, or is an entry point ``discreet.learners`` of a package.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

if TYPE_CHECKING:
    from discreet.learners.base import BatchLearner, FlowLearner, StreamLearner
    from discreet.learners.result import Result
    from discreet.learners.settings import Settings

from discreet import _registry
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.papers.bounds import RegretBound, bounds_of

STREAM = ("none", "central", "local")
"""What stream learners can use, unless they say otherwise."""
BATCH = ("shuffle", "central", "local", "none")
_PRINTED_BATCH = ("none", "shuffle", "central", "local")
_ADVERSARIAL = ("central", "local", "none")


class Listing(NamedTuple):
    """What `discreet list` says of a learner, known without loading it."""

    schedule: str
    trusts: tuple[str, ...]
    summary: str


_SHIPPED: dict[str, tuple[str, Listing]] = {
    "dp-ucbvi": (
        "learners.dp_ucbvi",
        Listing(
            "continual",
            STREAM,
            "UCBVI with private Bernstein bonuses, four terms, each with a switch",
        ),
    ),
    "explore-then-commit": (
        "learners.explore_then_commit",
        Listing("batch", BATCH, "explore with designed coverage, then commit: the baseline"),
    ),
    "flow-ucb": (
        "learners.flow_ucb.learner",
        Listing(
            "batch", BATCH, "optimism on flow-consistent batches: the practical private learner"
        ),
    ),
    "ldp-obi": (
        "learners.ldp_obi",
        Listing(
            "continual", STREAM, "optimism on signed estimates from local reports, four randomisers"
        ),
    ),
    "ldp-psrl": (
        "learners.psrl",
        Listing("continual", STREAM, "posterior sampling on locally private counts"),
    ),
    "pe": (
        "learners.elimination.learner",
        Listing(
            "batch", _PRINTED_BATCH, "policy elimination in stages, the non-private twin of sdp-pe"
        ),
    ),
    "private-uc-o-reps": (
        "adversarial.uc_o_reps",
        Listing(
            "adversarial",
            _ADVERSARIAL,
            "adversarial losses, full information: entropy FTRL over confidence boxes",
        ),
    ),
    "private-ucb-po": (
        "learners.private_ucb",
        Listing("continual", STREAM, "private policy optimisation by mirror ascent"),
    ),
    "private-ucb-vi": (
        "learners.private_ucb",
        Listing("continual", STREAM, "value iteration with private Hoeffding bonuses"),
    ),
    "private-uob-lbps": (
        "adversarial.uob_lbps",
        Listing(
            "adversarial",
            _ADVERSARIAL,
            "adversarial losses, bandit feedback: log-barrier mirror descent over boxes",
        ),
    ),
    "psrl": (
        "learners.psrl",
        Listing("continual", ("none",), "posterior sampling, no privacy"),
    ),
    "pucb": (
        "learners.private_ucb",
        Listing("continual", ("none", "central"), "UBEV on private counts"),
    ),
    "sdp-pe": (
        "learners.elimination.learner",
        Listing(
            "batch",
            _PRINTED_BATCH,
            "policy elimination on shuffle-private counts, in polynomial time",
        ),
    ),
    "ucbvi": (
        "learners.dp_ucbvi",
        Listing(
            "continual",
            ("none",),
            "optimistic value iteration, Hoeffding or Bernstein bonuses, no privacy",
        ),
    ),
}
"""Where each learner of discreet is (the module with it in its ``SPECS``), and what its own
specification says, known without loading it: a test keeps them equal."""


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
        make: batch and stream learners: the class, a `BatchLearner` or a `StreamLearner`.
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
    make: "type[BatchLearner] | type[StreamLearner] | None" = None
    run: "Callable[..., Result] | None" = None
    settings: "type[Settings] | None" = None

    @classmethod
    def of_stream(
        cls,
        make: "type[StreamLearner]",
        *,
        paper: str,
        own_bounds: Mapping[str, RegretBound] | None = None,
        trusts: tuple[str, ...] = STREAM,
    ) -> Self:
        """The line of a stream learner, whose class knows its name and its summary."""
        return cls(
            name=make.name,
            summary=make.summary,
            paper=paper,
            schedule="continual",
            trusts=trusts,
            own_bounds=own_bounds or {},
            make=make,
        )

    @classmethod
    def of_batch(
        cls,
        make: "type[FlowLearner[Settings]]",
        *,
        paper: str,
        trusts: tuple[str, ...] = BATCH,
    ) -> Self:
        """The line of a batch learner, whose class knows its name and its summary."""
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


def listing(name: str) -> Listing:
    """What `discreet list` says of a learner; one of ours is not loaded for it."""
    if name in _SHIPPED:
        return _SHIPPED[name][1]
    try:
        spec = get_learner(name)
    except InvalidInputError:  # one broken plug-in does not hide all others
        return Listing("", (), "(not available)")
    return Listing(spec.schedule, spec.trusts, spec.summary)


def get_learner(name: str) -> LearnerSpec:
    """The specification of one learner, or an error with a suggestion."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _SHIPPED:
        return _of_plugin(name)
    module = importlib.import_module(f"discreet.{_SHIPPED[name][0]}")
    specs: dict[str, LearnerSpec] = module.SPECS
    return specs[name]


def _of_plugin(name: str) -> LearnerSpec:
    if name not in _registry.entry_points("learners"):
        raise UnknownNameError("learner", name, learner_names())
    spec = _registry.load("learners", name)
    if not isinstance(spec, LearnerSpec) or spec.name != name:
        raise InvalidInputError(
            f"Expected the entry point {name!r} of discreet.learners to be a LearnerSpec of that "
            f"name, got {spec!r}."
        )
    return spec
