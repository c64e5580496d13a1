"""Which of several calibrated plans carries the least noise.

All candidates keep the same promise or a stronger one (Laplace noise has delta = 0), so the choice
is a matter of accuracy alone. It depends on the problem's size and on (epsilon, delta), which are
public, and on no data.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, overload

from discreet import _validate
from discreet.errors import CalibrationError, InvalidInputError, UnknownNameError, UnsupportedError
from discreet.mdp.shape import Shape, check_shape
from discreet.privacy.accounting.roots import check_delta, check_epsilon
from discreet.privacy.guarantee import Notion
from discreet.privacy.mechanisms.registry import Schedule, mechanisms
from discreet.privacy.plans import BatchMechanism, ContinualMechanism
from discreet.privacy.sensitivity import STATISTICS

_Plan = TypeVar("_Plan", bound=BatchMechanism | ContinualMechanism)


def worst_noise(plan: BatchMechanism | ContinualMechanism, users: int) -> dict[str, float]:
    """Standard deviation of the noise by statistic; of streams at the worst time."""
    variances = [plan.noise_variance(time) for time in _times(plan, users)]
    return {name: math.sqrt(max(v[name] for v in variances)) for name in plan.statistics}


def least_noise(plans: Sequence[_Plan], users: int) -> _Plan:
    """The plan whose noisiest counter has the least noise; the first of equals."""
    if len(plans) == 1:
        return plans[0]
    return min(plans, key=lambda plan: max(worst_noise(plan, users).values()))


def _times(plan: BatchMechanism | ContinualMechanism, users: int) -> Iterable[int]:
    if isinstance(plan, BatchMechanism):
        return [users]
    from discreet.privacy.mechanisms.toeplitz import ToeplitzStream  # brings scipy along

    if isinstance(plan, ToeplitzStream):
        return [plan.noise.worst_episode]
    return _worst_times(users)


def _worst_times(episodes: int) -> Iterator[int]:
    """The last release, and below it the numbers with the most ones in base two (trees).

    >>> list(_worst_times(12))
    [12, 11, 7]
    """
    yield episodes
    for position in range(episodes.bit_length()):
        if episodes >> position & 1 and (time := (episodes >> position << position) - 1) > 0:
            yield time


# Trust models: frozen configurations that calibrate themselves into plans.
#
# A trust model says who sees raw episodes and which (epsilon, delta) is wanted; `calibrate` turns
# it, for one problem size, into a plan with its noise and its guarantee.


Calibration = Literal[
    "exact", "paper", "paper-000", "paper-001", "paper-002", "paper-003", "paper-004"
]
"""Exact, or printed: by the one paper that prints the mechanism, or by that of a number."""


@dataclass(frozen=True)
class TrustModel:
    """Shared behaviour; the mechanisms of each are in `privacy.mechanisms.registry`."""

    notion: ClassVar[Notion]
    name: ClassVar[str]
    """Short, as in the roster, in experiment files and on the command line."""

    @overload
    def calibrate(
        self,
        shape: Shape,
        *,
        schedule: Literal["batch"] = "batch",
        statistics: tuple[str, ...] = ...,
        last_transitions: bool = ...,
    ) -> BatchMechanism: ...

    @overload
    def calibrate(
        self,
        shape: Shape,
        *,
        schedule: Literal["continual"],
        statistics: tuple[str, ...] = ...,
        episodes: int,
        stationary: bool = ...,
    ) -> ContinualMechanism: ...

    def calibrate(
        self,
        shape: Shape,
        *,
        schedule: Schedule = "batch",
        statistics: tuple[str, ...] = STATISTICS,
        episodes: int | None = None,
        stationary: bool = False,
        last_transitions: bool = True,
    ) -> BatchMechanism | ContinualMechanism:
        """Noise for this problem size that delivers this guarantee.

        With ``mechanism="auto"`` every one of `candidates` is calibrated and the one with the least
        noise (of streams: at the worst time) is taken; the plan's guarantee is its own.

        Args:
            shape: states, actions, horizon.
            schedule: ``"batch"`` (one release per batch of distinct users) or ``"stream"``
                (a release after every episode).
            statistics: which counters are released; the sensitivity follows from it.
            episodes: length of the stream (streams only).
            stationary: counters pooled over steps before the release (streams only).
            last_transitions: whether transitions of the last step are needed (batches only): they
                teach nothing unless steps are pooled, and a mechanism that can leave them out adds
                less noise. What the plan does is `BatchMechanism.last_transitions`.
        """
        check_shape(shape)
        _validate.truth(stationary=stationary, last_transitions=last_transitions)
        _validate.choice(("batch", "continual"), schedule=schedule)
        options = {"statistics": statistics, "episodes": episodes, "stationary": stationary}
        if schedule == "continual":
            _validate.count(episodes=episodes)
        else:
            options["last_transitions"] = last_transitions
        plans = _possible([(c, schedule) for c in self.candidates(schedule)], shape, options)
        return least_noise(plans, episodes or 1)

    def candidates(self, schedule: Schedule) -> tuple[Self, ...]:
        """The explicit trust models among which ``mechanism="auto"`` takes the least noise.

        >>> [c.mechanism for c in Central(epsilon=1, delta=1e-6).candidates("batch")]
        ['gaussian', 'laplace']
        """
        self.resolve(schedule)  # refuses what does not exist
        return (self,)

    def resolve(self, schedule: Schedule) -> str:
        """The mechanism's name for this schedule: the one asked for, or the default.

        The default of ``"auto"`` for callers that know no problem size; see `candidates`.
        """
        table = mechanisms(self.name, schedule)
        if not table:
            raise UnsupportedError(
                f"{type(self).__name__} has no {schedule} release; use a learner of another "
                f"schedule (see `discreet list`) or another trust model."
            )
        asked = getattr(self, "mechanism", "auto")
        if asked == "auto":
            return self._default(schedule)
        if asked not in table:
            raise UnknownNameError(f"{schedule} mechanism of {type(self).__name__}", asked, table)
        return str(asked)

    def load(self, schedule: Schedule) -> Any:
        """The class of the plans of the mechanism that `resolve` names."""
        return mechanisms(self.name, schedule)[self.resolve(schedule)].load()

    def _default(self, schedule: Schedule) -> str:
        return next(iter(mechanisms(self.name, schedule)))


def _possible(
    choices: list[tuple[TrustModel, Schedule]], shape: Shape, options: dict[str, Any]
) -> list[BatchMechanism | ContinualMechanism]:
    """The plans of all candidates that can be calibrated; if none can, the first one says why."""
    plans: list[BatchMechanism | ContinualMechanism] = []
    refused = None
    for trust, schedule in choices:
        try:
            plan = trust.load(schedule).calibrate(trust, shape, **options)
        except CalibrationError as error:
            refused = refused or error
        else:
            _check_name(trust.resolve(schedule), plan)
            plans.append(plan)
    if not plans and refused:
        raise refused
    return plans


def _check_name(name: str, plan: BatchMechanism | ContinualMechanism) -> None:
    """What a plan calls itself stands in results and tables: it has to be what was asked for."""
    if plan.mechanism != name:
        raise InvalidInputError(
            f"The mechanism {name!r} makes plans that are called {plan.mechanism!r}, like those of "
            f"another one; give its class {type(plan).__name__} the name {name!r}."
        )


@dataclass(frozen=True)
class PrivateTrust(TrustModel):
    """A trust model with an (epsilon, delta): what mechanisms are calibrated for."""

    epsilon: float
    delta: float = 0.0
    mechanism: str = "auto"
    calibration: Calibration = "exact"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        _validate.choice(get_args(Calibration), calibration=self.calibration)

    @property
    def printed(self) -> bool:
        """The constants of a paper are asked for."""
        return self.calibration != "exact"

    @property
    def paper(self) -> str:
        """The number of that paper where one is named, else nothing.

        >>> Local(1, calibration="paper-002").paper, Local(1, calibration="paper").paper
        ('002', '')
        """
        return self.calibration.partition("-")[2]

    def candidates(self, schedule: Schedule) -> tuple[Self, ...]:
        """One: the mechanism asked for, or the default."""
        return (replace(self, mechanism=self.resolve(schedule)),)


@dataclass(frozen=True)
class Central(PrivateTrust):
    """A trusted learner sees raw episodes; what all other users receive is private (JDP)."""

    notion: ClassVar[Notion] = "JDP"
    name: ClassVar[str] = "central"

    def _default(self, schedule: Schedule) -> str:
        if self.printed and schedule == "continual":
            return "tree-laplace"
        if self.delta == 0:
            return {"batch": "laplace", "continual": "tree-laplace"}[schedule]
        return super()._default(schedule)

    def candidates(self, schedule: Schedule) -> tuple[Self, ...]:
        """Gaussian noise (if delta > 0) against Laplace noise, which needs no delta."""
        if self.mechanism != "auto" or self.printed:
            return super().candidates(schedule)
        gaussian = super().candidates(schedule) if self.delta else ()
        pure = ("laplace",) if schedule == "batch" else ("tree-laplace", "tree-honaker")
        return (*gaussian, *(replace(self, mechanism=name, delta=0.0) for name in pure))


@dataclass(frozen=True)
class Local(PrivateTrust):
    """Nobody but the user sees raw episodes; each report is private by itself (LDP)."""

    notion: ClassVar[Notion] = "LDP"
    name: ClassVar[str] = "local"

    def _default(self, schedule: Schedule) -> str:
        return "laplace" if self.printed else super()._default(schedule)


@dataclass(frozen=True)
class Shuffle(PrivateTrust):
    """Nobody but the user sees raw episodes; a shuffler mixes the messages of all users (SDP).

    Attributes:
        honest: fraction of users whose noise can be relied on; they alone add enough of it.
    """

    honest: float = 1.0
    notion: ClassVar[Notion] = "SDP"
    name: ClassVar[str] = "shuffle"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive(honest=self.honest)
        _validate.probability(honest=self.honest)

    def _default(self, schedule: Schedule) -> str:
        """The papers print noise bits."""
        return "bits" if self.printed else super()._default(schedule)


@dataclass(frozen=True)
class NoPrivacy(TrustModel):
    """The non-private twin: the same code, with no noise."""

    notion: ClassVar[Notion] = "none"
    name: ClassVar[str] = "none"


TRUST_MODELS: dict[str, type[TrustModel]] = {
    model.name: model for model in (NoPrivacy, Central, Local, Shuffle)
}
"""What trust models are called in the roster, in experiment files and on the command line."""


def make_trust(name: str, **options: object) -> TrustModel:
    """The trust model of a short name; no privacy has no options.

    >>> make_trust("local", epsilon=1)
    Local(epsilon=1, delta=0.0, mechanism='auto', calibration='exact')
    """
    if name not in TRUST_MODELS:
        raise UnknownNameError("trust model", name, TRUST_MODELS)
    model = TRUST_MODELS[name]
    known = [item.name for item in fields(model)]
    for option, value in options.items():
        if not known:
            raise InvalidInputError(
                f"Expected no options for trust model {name!r}, which promises nothing, got "
                f"{option}={value!r}; leave it out, or choose central, local or shuffle."
            )
        if option not in known:
            raise UnknownNameError(f"option of {model.__name__}", option, known)
    return model(**options)


def check_trust_model(trust: object) -> None:
    """Refuse what is no trust model: a word, a class instead of an object of it, None.

    >>> check_trust_model("central")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidInputError: Expected a trust model, got trust='central'; write trust=...
    """
    if isinstance(trust, TrustModel) and hasattr(trust, "name"):
        return
    named = trust.__name__ if isinstance(trust, type) else str(trust)
    kinds = (model.__name__ for model in TRUST_MODELS.values())
    kind = next((kind for kind in kinds if kind.lower() == named.lower()), "Central")
    options = "" if kind == "NoPrivacy" else "epsilon=1, delta=1e-6"
    got = f"the class {named}" if isinstance(trust, type) else f"trust={trust!r}"
    raise InvalidInputError(
        f"Expected a trust model, got {got}; write trust={kind}({options}), for instance."
    )


def trust_name(trust: TrustModel) -> str:
    """The short name of a trust model.

    >>> trust_name(Central(epsilon=1))
    'central'
    """
    return trust.name
