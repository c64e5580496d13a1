"""Trust models: frozen configurations that calibrate themselves into mechanisms.

A trust model says who sees raw episodes and which (epsilon, delta) is wanted; `calibrate` turns it,
for one problem size, into a mechanism with its noise and its guarantee. Where the choice is open
(``mechanism="auto"``) a rule makes it, of the problem's size and (epsilon, delta) alone, which are
public: the first mechanism of the registry that delivers what is asked for, and of a curator's
batches the one of two with less noise (`Central.rule`).

**A budget of zero-concentrated privacy** (`Central.rho`). A Gaussian release has rho-zCDP with
rho = |move|²/(2·sigma²) (`Mechanism.concentrated`), so what it delivers at a delta depends on rho
alone: delta(epsilon) = Phi(m/2 - epsilon/m) - e^epsilon·Phi(-m/2 - epsilon/m), m = sqrt(2·rho)
(Balle and Wang 2018, Theorem 8). That epsilon, at rho·(1 - 1e-6), is what the mechanism is
calibrated for, by the same exact search as any other; what comes out is refused unless its own rho
is within the budget. It is less than
what every rho-zCDP mechanism has, rho + 2·sqrt(rho·ln(1/delta)) (Bun and Steinke 2016, Lemma 3.5).
"""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args

from discreet import _validate
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError
from discreet.mdp.shape import Shape, check_shape
from discreet.privacy.accounting.closed_forms import (
    gaussian_epsilon,
    gaussian_sigma,
    laplace_variance,
)
from discreet.privacy.accounting.roots import check_delta, check_epsilon
from discreet.privacy.guarantee import Notion
from discreet.privacy.mechanisms.base import BatchMechanism, ContinualMechanism, Request
from discreet.privacy.mechanisms.registry import MechanismSpec, Schedule, mechanisms
from discreet.privacy.sensitivity import STATISTICS

Calibration = Literal[
    "exact", "paper", "paper-000", "paper-001", "paper-002", "paper-003", "paper-004"
]
"""Exact, or printed: by the one paper that prints the mechanism, or by that of a number."""


@dataclass(frozen=True)
class TrustModel:
    """Shared behaviour; the mechanisms of each are in `privacy.mechanisms.registry`."""

    notion: ClassVar[Notion]
    name: ClassVar[str]
    """Short, as in the registry, in experiment files and on the command line."""
    encoded: ClassVar[bool] = False
    """Users encode on their own devices."""

    # Options of trust models that guarantee something, as whoever has none has them.

    @property
    def mechanism(self) -> str:
        """By name, or ``"auto"``."""
        return "auto"

    @property
    def calibration(self) -> Calibration:
        """Exact noise, or printed constants."""
        return "exact"

    @property
    def participations(self) -> int:
        """Episodes of one person."""
        return 1

    @property
    def separation(self) -> int:
        """Episodes between two of them, at least."""
        return 1

    @property
    def rho(self) -> float | None:
        """A budget of zero-concentrated privacy."""
        return None

    @property
    def printed(self) -> bool:
        """The constants of a paper are asked for."""
        return False

    @property
    def paper(self) -> str:
        """The number of that paper where one is named, else nothing."""
        return ""

    def calibrate(
        self,
        shape: Shape,
        *,
        statistics: tuple[str, ...] = STATISTICS,
        last_transitions: bool = True,
        together: bool = False,
    ) -> BatchMechanism:
        """Noise for this problem size that delivers this guarantee, one release per batch.

        Args:
            shape: states, actions, horizon.
            statistics: which counters are released; the sensitivity follows from it.
            last_transitions: whether transitions of the last step are needed: they teach nothing
                unless steps are pooled, and a mechanism that can leave them out adds less noise.
                What it does is its own `last_transitions`.
            together: all participations of a person are in one release, which moves its counters m
                times as far; otherwise each is in a release of its own.
        """
        request = Request(shape, statistics, 0, False, last_transitions, together)
        made: BatchMechanism = self._calibrated(request, "batch")
        return made

    def calibrate_stream(
        self,
        shape: Shape,
        *,
        episodes: int,
        stationary: bool = False,
        statistics: tuple[str, ...] = STATISTICS,
        last_transitions: bool = True,
    ) -> ContinualMechanism:
        """For a release after every episode, in simulations.

        Args:
            shape: states, actions, horizon.
            episodes: length of the stream.
            stationary: counters are pooled over steps before the release.
            statistics: as in `calibrate`.
            last_transitions: as in `calibrate`.
        """
        _validate.count(episodes=episodes)
        request = Request(shape, statistics, episodes, stationary, last_transitions, False)
        made: ContinualMechanism = self._calibrated(request, "continual")
        return made

    def _calibrated(self, request: Request, schedule: Schedule) -> Any:
        check_shape(request.shape)
        _validate.truth(
            stationary=request.stationary,
            last_transitions=request.last_transitions,
            together=request.together,
        )
        self._check_returning(schedule)
        trust = self.rule(request, schedule)
        spec = trust.spec(schedule)
        spec.check_printed(trust)
        spec.check_returning(trust.participations)
        mechanism = spec.load().calibrate(spec, trust, request)
        _check_delivered(mechanism, spec, trust)
        _check_together(mechanism, spec, trust, request)
        if trust.rho is not None:
            mechanism = replace(mechanism, guarantee=replace(mechanism.guarantee, rho=trust.rho))
        return mechanism

    def rule(self, request: Request, schedule: Schedule) -> "TrustModel":
        """This trust model with its mechanism by name, if the choice is open."""
        return self

    def resolve(self, schedule: Schedule) -> str:
        """The mechanism's name for this schedule: the one asked for, or the default.

        The default of ``"auto"`` for callers that know no problem size; see `rule`.
        """
        table = mechanisms(self.name, schedule)
        if not table:
            raise UnsupportedError(
                f"{type(self).__name__} has no {schedule} release; use a learner of another "
                f"schedule (see `discreet list`) or another trust model."
            )
        asked = self.mechanism
        if asked == "auto":
            return self._default(schedule)
        if asked not in table and asked in mechanisms(self.name, "continual"):
            raise UnsupportedError(
                f"Expected a mechanism of batches, got {asked!r}, which is for streams: `discreet "
                f"calibrate --schedule continual`, `discreet certify --episodes N`, "
                f"`calibrate_stream` in Python."
            )
        if asked not in table:
            raise UnknownNameError(f"{schedule} mechanism of {type(self).__name__}", asked, table)
        return asked

    def spec(self, schedule: Schedule) -> MechanismSpec:
        """What is known of the mechanism that `resolve` names."""
        return mechanisms(self.name, schedule)[self.resolve(schedule)]

    def _default(self, schedule: Schedule) -> str:
        return next(iter(mechanisms(self.name, schedule)))

    def _check_returning(self, schedule: Schedule) -> None:
        """Whether the schedule knows what was said of people who return."""


def _check_delivered(mechanism: Any, spec: MechanismSpec, trust: TrustModel) -> None:
    """Anybody can register a calibrator: what it made has to be what was asked for."""
    said = mechanism.guarantee
    if mechanism.spec != spec or said.notion != trust.notion:
        raise InvalidInputError(
            f"The calibrator of the {spec.trust} mechanism {spec.name!r} made one that calls "
            f"itself {mechanism.name!r} and delivers {said}; hand its spec and trust model on."
        )
    if not isinstance(trust, PrivateTrust) or trust.printed:  # what is printed delivers its own
        return
    rho, most = mechanism.concentrated(), trust.rho
    if most is not None and rho is None:
        raise UnsupportedError(
            f"The mechanism {spec.name!r} has no Gaussian noise, and only that is calibrated for "
            f"rho={most!r}; leave the mechanism out, or give epsilon instead of rho."
        )
    if most is not None and rho > most:
        raise InvalidInputError(
            f"Expected rho <= {most!r} of {spec.name!r}, got {rho!r}; its calibrator has to add "
            f"more noise."
        )
    if said.participations != trust.participations:
        raise InvalidInputError(
            f"Expected a guarantee for participations={trust.participations} of {spec.name!r}, got "
            f"{said}; its calibrator has to hand them on."
        )
    if said.epsilon > trust.epsilon or said.delta > trust.delta:
        raise InvalidInputError(
            f"Expected epsilon <= {trust.epsilon} and delta <= {trust.delta} of {spec.name!r}, "
            f"got {said}; its calibrator has to deliver what the trust model asks for."
        )


def _check_together(
    mechanism: Any, spec: MechanismSpec, trust: TrustModel, request: Request
) -> None:
    several = trust.participations
    if request.together and several > 1 and not getattr(mechanism, "together", False):
        raise UnsupportedError(
            f"The {spec.trust} {spec.schedule} mechanism {spec.name!r} is not calibrated for "
            f"several episodes of one person in one release, got participations={several}; use "
            f"participations=1, or a central batch mechanism that discreet ships."
        )


@dataclass(frozen=True)
class PrivateTrust(TrustModel):
    """A trust model with a guarantee (epsilon, delta).

    Attributes:
        epsilon: the largest privacy loss.
        delta: what is added to the bound on every probability; 0 asks for pure privacy.
        mechanism: the mechanism by name; ``"auto"`` leaves it to a rule.
        calibration: ``"exact"`` delivers the guarantee; ``"paper"`` uses the printed constants.
        participations: how many episodes of one person are protected together. Neighbours differ
            in all of them. A person is at most once in a batch.
        separation: the least number of episodes between two of the same person, for a central
            continual release. A larger number needs less noise.
    """

    epsilon: float
    delta: float = 0.0
    mechanism: str = "auto"
    calibration: Calibration = "exact"
    participations: int = field(default=1, kw_only=True)
    separation: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        _validate.choice(get_args(Calibration), calibration=self.calibration)
        _validate.count(participations=self.participations, separation=self.separation)
        if self.printed and self.participations > 1:
            raise UnsupportedError(
                f"No paper prints constants for people who return, got calibration="
                f"{self.calibration!r} and participations={self.participations}; use "
                f"calibration='exact'."
            )

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

    def _default(self, schedule: Schedule) -> str:
        """The first that delivers what is asked for: printed constants, or delta = 0."""
        table = list(mechanisms(self.name, schedule).values())
        printing = [spec for spec in table if spec.papers] if self.printed else []
        pure = [spec for spec in table if spec.pure] if self.delta == 0 else []
        return (printing or pure or table)[0].name

    def rule(self, request: Request, schedule: Schedule) -> Self:
        """With the default's name: the first that delivers what is asked for."""
        return replace(self, mechanism=self.resolve(schedule))

    def _check_returning(self, schedule: Schedule) -> None:
        if self.separation > 1 and (self.name, schedule) != ("central", "continual"):
            raise UnsupportedError(
                f"Expected separation=1 of a {schedule} release under {type(self).__name__}, where "
                f"every participation costs the same whenever it is, got {self.separation}."
            )


@dataclass(frozen=True)
class Central(PrivateTrust):
    """Central trust: the learner sees raw episodes. What all other users receive is private (JDP).

    >>> print(Central(epsilon=1, delta=1e-6).calibrate(Shape(4, 2, 6)).guarantee)
    (1, 1e-06)-JDP, one user's whole episode, replace-one

    Attributes:
        rho: a budget of zero-concentrated privacy, instead of epsilon. The noise is then Gaussian,
            and epsilon is what it delivers at ``delta`` (1e-6 if that is left out).

    >>> trust = Central(rho=0.1)
    >>> trust.delta, round(trust.epsilon, 3)
    (1e-06, 1.995)
    """

    epsilon: float = 0.0
    rho: float | None = field(default=None, kw_only=True)
    notion: ClassVar[Notion] = "JDP"
    name: ClassVar[str] = "central"

    def __post_init__(self) -> None:
        if self.rho is not None:
            self._spend(self.rho)
        super().__post_init__()

    def rule(self, request: Request, schedule: Schedule) -> Self:
        """Of a batch with a delta Laplace noise where it is less than Gaussian noise.

        By two closed forms: the variance at scale L1/epsilon, and the analytic sigma at L2. Laplace
        noise needs no delta; for a person in several batches it composes with one (`one_shot`).
        """
        open_choice = self.mechanism == "auto" and not self.printed and self.rho is None
        if schedule == "continual" or not open_choice or self.delta == 0:
            return super().rule(request, schedule)
        moved = request.moved(self.participations)
        laplace = laplace_variance(moved.l1 / float(self.epsilon))
        pure = laplace <= gaussian_sigma(moved.l2, float(self.epsilon), float(self.delta)) ** 2
        known = mechanisms(self.name, schedule).values()
        name = next(spec.name for spec in known if spec.pure is pure)
        delta = 0.0 if pure and self.participations == 1 else self.delta
        return replace(self, mechanism=name, delta=delta)

    def _spend(self, rho: float) -> None:
        """The epsilon and delta of a budget rho (module docstring)."""
        _validate.positive(rho=rho)
        if self.printed:
            raise UnsupportedError(
                f"No paper prints constants for rho, got rho={rho!r} and calibration="
                f"{self.calibration!r}; use calibration='exact'."
            )
        delta = self.delta or 1e-6
        check_delta(delta)
        epsilon = gaussian_epsilon(1.0, math.sqrt(2 * rho * (1 - 1e-6)), delta)
        if self.epsilon and not math.isclose(self.epsilon, epsilon, rel_tol=1e-9):
            raise InvalidInputError(
                f"Expected epsilon or rho, got epsilon={self.epsilon!r} and rho={rho!r}; rho is a "
                f"budget of its own, and epsilon follows from it."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


@dataclass(frozen=True)
class Local(PrivateTrust):
    """Local trust: only the user sees a raw episode. Each report is private by itself (LDP)."""

    notion: ClassVar[Notion] = "LDP"
    name: ClassVar[str] = "local"
    encoded: ClassVar[bool] = True

    def resolve(self, schedule: Schedule) -> str:
        streams, batches = (mechanisms("local", kind) for kind in ("continual", "batch"))
        if schedule == "batch" and self.mechanism in streams.keys() - batches.keys():
            raise UnsupportedError(
                f"mechanism={self.mechanism!r} of Local is for streams; a batch is of 'split' "
                f"reports, which need less noise. Leave the mechanism out; a study that was begun "
                f"with it goes on with discreet 0.2."
            )
        return super().resolve(schedule)


@dataclass(frozen=True)
class Shuffle(PrivateTrust):
    """Shuffle trust: a shuffler mixes the messages of all users before anybody reads them (SDP).

    Attributes:
        honest: the fraction of users who add their noise honestly. They alone add enough of it.
        min_users: the smallest batch that learners ask for; 0 allows all that can be released.
    """

    honest: float = 1.0
    min_users: int = 0
    notion: ClassVar[Notion] = "SDP"
    name: ClassVar[str] = "shuffle"
    encoded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive(honest=self.honest)
        _validate.probability(honest=self.honest)
        _validate.count(0, min_users=self.min_users)


@dataclass(frozen=True)
class NoPrivacy(TrustModel):
    """No privacy: the same code without noise, for comparison."""

    notion: ClassVar[Notion] = "none"
    name: ClassVar[str] = "none"


TRUST_MODELS: dict[str, type[TrustModel]] = {
    model.name: model for model in (NoPrivacy, Central, Local, Shuffle)
}
"""What trust models are called in the registry, in experiment files and on the command line."""


def make_trust(name: str, **options: object) -> TrustModel:
    """The trust model of a short name; no privacy has no options.

    >>> make_trust("local", epsilon=1) == Local(epsilon=1)
    True
    """
    if name not in TRUST_MODELS:
        raise UnknownNameError("trust model", name, TRUST_MODELS)
    model = TRUST_MODELS[name]
    known = [item.name for item in fields(model)]
    for option, value in options.items():
        if not known:
            raise InvalidInputError(
                f"Expected no options for trust model {name!r}, which guarantees nothing, got "
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
