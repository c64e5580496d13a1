"""What a mechanism is: calibrated, without data, and it answers for itself.

Two schedules. *Batch*: one release per batch of distinct users, each of them in at most m batches
(the guarantee's participations; one unless it says otherwise), so that a person's batches compose
and all others cost nothing. *Continual*: a release after every user, one guarantee over all of
them. A mechanism carries its spec, its noise and its guarantee; whoever wants to know something of
it (its worst time, what follows from its guarantee, what a certificate has to prove, what it costs)
asks it, and nobody asks for its name.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    runtime_checkable,
)

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.errors import DiscreetWarning, InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import (
    ASSUMPTIONS,
    Guarantee,
    Implied,
    assumed,
    implied,
    rounded_up,
)
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import CENTRED, STATISTICS, Sensitivity
from discreet.privacy.statistics import (
    Debias,
    PrivateCounts,
    check_counts,
    check_support,
    flatten,
    split,
    supported_counts,
)

if TYPE_CHECKING:
    from discreet.privacy.mechanisms.noise import NoiseDistribution
    from discreet.privacy.trust import PrivateTrust, TrustModel

Draw = Callable[[int], Counts]
"""``draw(n)`` runs n fresh users and counts what they did."""


class Request(NamedTuple):
    """What a mechanism is calibrated for: ``episodes`` and ``stationary`` are of the continual.

    ``together``: all participations of a person meet in one batch.
    """

    shape: Shape
    statistics: tuple[str, ...] = STATISTICS
    episodes: int = 0
    stationary: bool = False
    last_transitions: bool = True
    together: bool = False

    def moved(self, participations: int = 1, *, separation: int = 1) -> Sensitivity:
        """How far one person moves the released counters."""
        together = self.together and participations > 1
        return Sensitivity.of(
            self.shape.horizon,
            self.statistics,
            stationary=self.stationary,
            last_transitions=self.last_transitions,
            participations=participations,
            separation=separation,
            together=together,
        )

    def check(self) -> None:
        """Refuse a batch that would release nothing."""
        some = self.last_transitions or self.shape.horizon > 1
        if set(self.statistics) == {"transitions"} and not some:
            raise InvalidInputError(
                "Expected something to release, got the transitions of one step without those of "
                "the last one; ask for rewards, or for last_transitions=True."
            )


@dataclass(frozen=True)
class Traffic:
    """What one user sends in one batch.

    Attributes:
        messages: how many; one where the report goes to the analyser as it is.
        bytes: their size on the wire (`discreet.device.wire`). Messages through a shuffler are
            sealed one by one, 52 bytes each; a local report has its header of 38 bytes. What
            carries them (tickets, transport) comes on top.
    """

    messages: int
    bytes: int


class Encoder(Protocol):
    """The part of a local or shuffle mechanism that runs on a user's own device.

    Small, free of data and serialisable: what a device needs is `to_dict`, nothing else.
    """

    @property
    def traffic(self) -> Traffic:
        """What one device sends."""

    def encode(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, sampler: Sampler
    ) -> IntArray:
        """One user's private report.

        Args:
            states: ``int64[H + 1]``, the states visited, with the one after the last step.
            actions: ``int64[H]``.
            rewards: ``float64[H]`` in [0, 1]; rounded to bits on the device.
            sampler: the device's randomness.

        Returns:
            The messages, one per row; their meaning is the mechanism's own affair.
        """

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON, with ``"encoder"`` naming the mechanism."""

    @classmethod
    def from_dict(cls, data: JsonObject) -> Self:
        """The inverse of `to_dict`."""


@runtime_checkable
class WireEncoder(Encoder, Protocol):
    """One that `discreet.device` runs: its reports have a form as bytes."""

    @property
    def length(self) -> int:
        """Bytes of one report, header included."""

    def from_bytes(self, data: bytes) -> IntArray:
        """A report that came as bytes, as the analyser takes it; refused if of another batch."""


@dataclass(frozen=True, kw_only=True)
class AuditSizes:
    """How small a mechanism must be made to be audited exactly; an attribute of its calibrator.

    Attributes:
        shape: None: small, as all of its trust model are.
        statistics: that are audited.
        episodes: of a continual release.
        last_transitions: as in `Request`.
        target: attacked at one step and one statistic; False: where it is audited.
        long: also with 256 releases.
        quick_long: that too in a quick audit.
        slow: left out of a quick audit.
        forms: also ``"centred"``, as learners ask for it.
        centred_losses: also with centred bandit losses.
    """

    shape: Shape | None = None
    statistics: tuple[str, ...] = STATISTICS
    episodes: int = 5
    last_transitions: bool = True
    target: bool = True
    long: bool = True
    quick_long: bool = False
    slow: bool = False
    forms: tuple[str, ...] = ("",)
    centred_losses: bool = False


USUAL_SIZES = AuditSizes()

Certified = tuple[str, dict[str, Any]]
"""A noise distribution as certificates know it: its name and its exact parameters."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Mechanism(ABC):
    """Calibrated for a problem's size, with its guarantee; holds no data."""

    spec: MechanismSpec
    shape: Shape
    statistics: tuple[str, ...]
    guarantee: Guarantee
    audit: ClassVar[AuditSizes] = USUAL_SIZES

    @classmethod
    def calibrate(cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request) -> "Mechanism":
        """The mechanism for the statistics of an MDP that delivers the trust model's guarantee."""
        own = cls.designed(spec, trust, request)
        if spec.schedule == "continual":
            own |= {"episodes": request.episodes, "stationary": request.stationary}
        return cls(spec=spec, shape=request.shape, statistics=request.statistics, **own)

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        """The fields that a mechanism adds: what it draws, and the guarantee that delivers."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """What its trust model calls it."""
        return self.spec.name

    @abstractmethod
    def noise_variance(self, users: int) -> dict[str, float]:
        """Noise variance on one counter of each released statistic, after ``users`` users."""

    @abstractmethod
    def worst_time(self, users: int) -> int:
        """After how many of ``users`` users the noise is largest."""

    def worst_noise(self, users: int) -> dict[str, float]:
        """Standard deviation of the noise by statistic, at the worst time."""
        variances = self.noise_variance(self.worst_time(users))
        return {name: math.sqrt(variances[name]) for name in self.statistics}

    def implied(self) -> tuple[Implied, ...]:
        """Guarantees that follow from its own, each with its reason."""
        return implied(self.guarantee)

    def concentrated(self) -> float | None:
        """The rho of zero-concentrated privacy that Gaussian noise delivers, else None.

        Discrete Gaussian noise of sigma on a lattice that contains the moves satisfies rho-zCDP
        with rho = |move|²/(2·sigma²) (Canonne, Kamath and Steinke 2020, Theorem 4), coordinates add
        up, and a stream whose fresh noise covers each move given the past adds up too.
        """
        return None

    def certified(self, users: int | None = None) -> Certified:
        """The distribution of its noise, for a certificate to bound.

        Args:
            users: of the batch, where the noise depends on it; None: for every batch.

        Raises:
            UnsupportedError: no certificate covers it.
        """
        raise UnsupportedError(f"The mechanism {self.name!r} is not covered by certificates.")

    @property
    def per_batch(self) -> bool:
        """Whether `certified` has to know the size of the batch."""
        return False

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        """What is released, of whom and when: all that the moves of one user depend on."""
        shape = self.shape
        return {
            "trust": self.spec.trust,
            "mechanism": self.spec.certified_as or self.name,
            "participations": self.guarantee.participations,
            "states": shape.states,
            "actions": shape.actions,
            "horizon": shape.horizon,
            "statistics": [name for name in STATISTICS if name in self.statistics],
            "schedule": self.spec.schedule,
        }

    def cost_facts(self, trust: "TrustModel", users: int) -> JsonObject:
        """More fields of a `CalibrationReport`."""
        return {}

    @property
    def takes_reports(self) -> bool:
        """Its users encode on their own devices: it has an `encoder`."""
        return False

    def encoder(self, users: int = 1, *, support: BoolArray | None = None) -> Encoder:
        """What runs on the device of each of ``users`` users.

        Raises:
            UnsupportedError: its users hand over raw episodes.
        """
        raise self._no_encoder()

    def _no_encoder(self) -> UnsupportedError:
        return UnsupportedError(
            f"The mechanism {self.name!r} takes raw counts, not reports, and has no encoder; use "
            f"a batch under Local or Shuffle to encode on the device."
        )

    def traffic(self, users: int, *, support: BoolArray | None = None) -> Traffic | None:
        """What a user's device sends; None where users hand over raw episodes."""
        return self.encoder(users, support=support).traffic if self.takes_reports else None


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchMechanism(Mechanism):
    """A calibrated one-shot release, used once per batch of distinct users.

    Attributes:
        centred: rewards are released as sums of r - 1/2 (see `PrivateCounts`).
        last_transitions: transitions of the last step are released too.
        together: one release holds all participations of a person.
    """

    centred: bool = False
    last_transitions: bool = True
    together: bool = False

    @property
    def centre(self) -> float:
        """c: rewards are released as sums of r - c."""
        return 0.5 if self.centred else 0.0

    def worst_time(self, users: int) -> int:
        """There is one release."""
        return users

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        """With the form of the release."""
        return super().release_facts(users) | {"last_transitions": self.last_transitions}

    @property
    def min_users(self) -> int:
        """Of a batch that can be released."""
        return 1

    @property
    def visit_variance(self) -> float:
        """Variance that each visit adds to its counter, beyond `noise_variance`.

        Zero where every visit is reported; more where a user reports a part of the episode.
        """
        return 0.0

    @property
    def reward_visit_variance(self) -> float:
        """As `visit_variance`, of the reward counter: at most, beyond the reward's own r(1-r)."""
        return self.visit_variance

    @property
    def takes_counts(self) -> bool:
        """It can be released from the raw counts of all users."""
        return True

    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Release one batch. ``support`` marks the (h, s, a) its public policy can reach.

        Raises:
            UnsupportedError: users report different things, which their sums do not determine.
        """
        raise UnsupportedError(
            f"A batch of the mechanism {self.name!r} cannot be made from the counts of all its "
            f"users: each of them reports something else. Use `simulate` (users drawn one group "
            f"after the other) or `encoder` and `release_reports`."
        )

    def simulate(
        self, draw: Draw, users: int, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Release a simulated batch; ``draw(n)`` runs n fresh users."""
        _validate.count(users=users)
        return self.release(draw(users), sampler=sampler, support=support)

    def release_reports(
        self,
        reports: IntArray,
        users: int,
        *,
        secure: bool = True,
        support: BoolArray | None = None,
    ) -> PrivateCounts:
        """Release a batch from the encoded reports of its users.

        Args:
            reports: the messages of all users, one below the other.
            users: number of users behind them.
            secure: False if the devices drew simulated noise.
            support: marks the (h, s, a) that the batch's public policy can reach.
        """
        if not self.takes_reports:
            raise self._no_encoder()
        return self._from_reports(
            _table(reports), users, check_support(support, self.shape), secure
        )

    def _from_reports(
        self, reports: IntArray, users: int, support: BoolArray, secure: bool
    ) -> PrivateCounts:
        """What `add_up` found, without its bias."""
        released, estimate = self.add_up(reports, users, support)
        return batch_release(self, released, users, support, secure=secure, estimate=estimate)

    def add_up(
        self, reports: IntArray, users: int, support: BoolArray
    ) -> tuple[dict[str, IntArray], Debias]:
        """Sums of the reports by statistic, as rows, and how to take their bias out.

        Refuses reports that the encoders of these users cannot have sent.
        """
        raise self._no_encoder()


def _table(reports: object) -> IntArray:
    """Reports as an array; what is in it is for the mechanism to judge."""
    try:
        return np.asarray(reports)
    except ValueError:
        raise InvalidInputError(
            "badReport: Expected reports as a table of integers, got rows of different lengths; "
            "hand over the messages of all users one below the other. Nothing was released."
        ) from None


@dataclass(frozen=True, eq=False, kw_only=True)
class ContinualMechanism(Mechanism):
    """A calibrated continual release: cumulative statistics after every one of ``episodes``."""

    episodes: int
    stationary: bool = False
    last_transitions: bool = True  # False: those of the last step are not counted, as 002 prints
    response: ClassVar[Literal["unit", "cell", "category"]] = "unit"
    """What one step of a user adds to the released counters, see `NoiseBlock`."""

    def worst_time(self, users: int) -> int:
        """The first with the most noise of the last release and of those before it with most ones.

        Numbers with the most ones in base two are the worst of trees.
        """
        return max(worst_times(users), key=lambda time: max(self.noise_variance(time).values()))

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        """With its length."""
        own: dict[str, Plain] = {"episodes": self.episodes, "stationary": self.stationary}
        return super().release_facts(users) | own

    def flat(self, counts: Counts, *, stationary: bool | None = None) -> IntArray:
        """What is released of these counts: `flatten`, of the mechanism's own form."""
        pooled = self.stationary if stationary is None else stationary
        last = self.last_transitions
        return flatten(counts, self.statistics, stationary=pooled, last_transitions=last)

    def times(self, asked: IntArray | None) -> IntArray:
        """These numbers of users, or 1, 2, ..., ``episodes``."""
        return np.arange(1, self.episodes + 1) if asked is None else asked

    @abstractmethod
    def error_bound(self, episode: int, failure: float) -> float:
        """A bound that |noise| on one counter exceeds with probability at most ``failure``."""

    def error_bounds(self, failure: float, users: IntArray | None = None) -> FloatArray:
        """`error_bound` after so many users each; after 1, 2, ..., ``episodes`` if not given."""
        return np.array([self.error_bound(int(k), failure) for k in self.times(users)])

    def summed_noise(self) -> "tuple[NoiseDistribution, int] | None":
        """What every user adds to a counter, and how many draws of it; None if noise is no sum."""
        return None

    @abstractmethod
    def open(self, sampler: Sampler) -> "ContinualRelease":
        """Start a stream; a stream is used once."""

    @property
    def cells(self) -> int:
        """Counters released per episode, all statistics together."""
        sizes = {
            "transitions": int(np.prod(self.shape.transitions)),
            "visits": int(np.prod(self.shape.visits)),
            "rewards": int(np.prod(self.shape.visits)),
        }
        total = sum(sizes[name] for name in self.statistics)
        return total // self.shape.horizon if self.stationary else total


def worst_times(episodes: int) -> Iterator[int]:
    """The last release, and below it the numbers with the most ones in base two (trees).

    >>> list(worst_times(12))
    [12, 11, 7]
    """
    yield episodes
    for position in range(episodes.bit_length()):
        if episodes >> position & 1 and (time := (episodes >> position << position) - 1) > 0:
            yield time


@dataclass(frozen=True, eq=False)
class NoiseBlock:
    """All randomness of the next releases, drawn ahead so that a compiled loop can use it.

    The integers (in units of ``scale``) released after k users are ``noise[k] + sum over users
    i <= k of their steps``, where a step (h, s, a, s', reward bit r) of user i adds, by the
    mechanism's ``response``,

    * ``"unit"``: one to the transition and visit counters and r to the reward counter (additive
      noise; ``gains`` is empty);
    * ``"cell"``: ``gains[i, c]`` to each counter c that "unit" would add one to, where c counts
      cells per step also when the released counters are pooled over steps;
    * ``"category"``: with g = ``gains[i, ((s·A + a)·S + s')·2 + r]`` if h == ``steps[i]`` and 0
      otherwise, g to the transition and visit counters and r·g to the reward counter.

    Public are ``scale·(integers - centres[k])``, see `debias`. With "unit" nothing is left to do:
    the sum of counts and noise is public as it is (a whole number, or one on a dyadic grid, so that
    the sum is exact in double precision).

    Attributes:
        noise: ``float64[n, cells]``, on each cumulative counter; all values are integers, or
            multiples of the mechanism's grid.
        gains: ``float64[n, g]``; what a true unit adds after randomisation: -1, 0 or 1.
        steps: ``int64[n]``, the one step each user reports; empty unless "category".
        centres: ``float64[n, cells]``; empty (no columns) for "unit".
        scale: of the estimates.
    """

    noise: FloatArray
    gains: FloatArray
    steps: IntArray
    centres: FloatArray
    scale: float = 1.0


@dataclass(eq=False)
class ContinualRelease(ABC):
    """One running stream. Compiled learners take noise in blocks; `add` is the plain interface."""

    mechanism: ContinualMechanism
    sampler: Sampler
    episode: int = field(default=0, init=False)
    _way: str | None = field(default=None, init=False, repr=False)

    @abstractmethod
    def noise_block(self, episodes: int) -> FloatArray:
        """Noise on each *cumulative* counter after each of the next ``episodes`` releases.

        Shape ``[episodes, mechanism.cells]``; cells are its statistics in order, each flattened.
        Block boundaries do not change the values. The caller adds the true cumulative
        counts (a compiled kernel that simulates, releases and learns does so in place).
        Implementations advance ``self.episode``. Mechanisms that randomise the data instead of
        adding noise refuse it: `block` serves all of them.
        """

    def block(self, episodes: int) -> NoiseBlock:
        """All randomness of the next ``episodes`` releases, for every kind of response."""
        noise = self.noise_block(episodes)
        nothing = np.empty((episodes, 0))
        return NoiseBlock(noise, nothing, np.empty(0, np.int64), nothing)

    def add(self, counts: Counts) -> PrivateCounts:
        """Take one more user's counts and return the cumulative private statistics."""
        check_counts(counts, self.mechanism.shape, users=1)
        self.use("add")
        values = self._take(counts)  # refuses, before anything changes, when the stream is over
        self.episode += 1
        return unflatten(values, self.mechanism, self.episode, secure=self.sampler.secure)

    @abstractmethod
    def _take(self, counts: Counts) -> FloatArray:
        """What is public after one more user, laid out as `flatten` does: debiased integers."""

    def use(self, way: str) -> None:
        """A stream is used in one way: through `add` or in blocks."""
        if self._way not in (None, way):
            raise UnsupportedError(
                f"This stream has been used through `{self._way}`; open another one to use `{way}`."
            )
        self._way = way


NoiseOf = Callable[[str, int], IntArray]
"""``draw(statistic, n)`` returns n independent integers of mean zero."""


def noisy_batch(
    mechanism: BatchMechanism,
    counts: Counts,
    draw: NoiseOf,
    *,
    secure: bool,
    support: BoolArray | None,
) -> PrivateCounts:
    """Add noise to the counters that the batch's policy can touch; all others stay exactly zero.

    Args:
        mechanism: carries the statistics and the guarantee.
        counts: the raw counts of the batch.
        draw: the noise.
        secure: whether ``draw`` protects real people.
        support: ``bool[H, S, A]`` or None for everything.
    """
    if mechanism.centred:
        from discreet.privacy.mechanisms.cells import Cells

        mask = check_support(support, mechanism.shape)
        kept, last = supported_counts(counts, mechanism.shape, mask), mechanism.last_transitions
        cells = Cells.of(kept, mask, CENTRED, last_transitions=last)
        cells.plus(draw)
        return cells.published(mechanism, counts.users, secure=secure)
    return randomised_batch(
        mechanism,
        counts,
        lambda name, raw: raw + draw(name, raw.size),
        secure=secure,
        support=support,
    )


def randomised_batch(
    mechanism: BatchMechanism,
    counts: Counts,
    randomise: Callable[[str, IntArray], IntArray],
    *,
    secure: bool,
    support: BoolArray | None,
    estimate: Debias | None = None,
) -> PrivateCounts:
    """As `noisy_batch`, with ``randomise(statistic, raw values)`` instead of added noise.

    ``estimate`` takes the bias out of the randomised integers, where they have one.
    """
    mask = check_support(support, mechanism.shape)
    kept = supported_counts(counts, mechanism.shape, mask)
    released: dict[str, IntArray] = {}
    for name in mechanism.statistics:
        raw: IntArray = getattr(kept, f"row_{name}")
        released[name] = np.asarray(randomise(name, raw.ravel())).reshape(raw.shape)
    return batch_release(mechanism, released, counts.users, mask, secure=secure, estimate=estimate)


def batch_release(
    mechanism: BatchMechanism,
    released: Mapping[str, IntArray],
    users: int,
    support: BoolArray,
    *,
    secure: bool,
    estimate: Debias | None = None,
    dropped_out: Mapping[str, FloatArray] | None = None,
    noise_variance: Mapping[str, float] | None = None,
) -> PrivateCounts:
    """`PrivateCounts` of a batch from its released integers by name, dense or as rows.

    ``noise_variance`` is the mechanism's, unless the batch has its own.
    """
    debiased = estimate or Debias()
    values = {name: debiased(name, integers) for name, integers in released.items()}
    return PrivateCounts(
        users=users,
        transitions=values.get("transitions"),
        visits=values.get("visits"),
        rewards=values.get("rewards"),
        noise_variance=noise_variance or mechanism.noise_variance(users),
        support=support,
        guarantee=mechanism.guarantee.stamped(secure=secure),
        centred=mechanism.centred,
        last_transitions=mechanism.last_transitions,
        dropped_out=dropped_out,
    )


def unflatten(
    values: FloatArray, mechanism: ContinualMechanism, episode: int, *, secure: bool
) -> PrivateCounts:
    """Cumulative private statistics from a vector laid out as `flatten` does."""
    steps = 1 if mechanism.stationary else mechanism.shape.horizon
    parts = split(values, mechanism.shape, mechanism.statistics, steps=steps)
    return PrivateCounts(
        users=episode,
        transitions=parts.get("transitions"),
        visits=parts.get("visits"),
        rewards=parts.get("rewards"),
        noise_variance=mechanism.noise_variance(episode),
        support=np.ones((steps, *mechanism.shape.visits[1:]), np.bool_),
        guarantee=mechanism.guarantee.stamped(secure=secure),
    )


def guaranteed(
    trust: "PrivateTrust", epsilon: float, delta: float, *, apart: str = "once in a batch"
) -> Guarantee:
    """The guarantee of a trust model's notion, with its assumptions.

    ``apart`` says how a person's participations lie.
    """
    return Guarantee(
        notion=trust.notion,
        epsilon=float(epsilon),
        delta=float(delta),
        assumptions=assumed(ASSUMPTIONS[trust.notion], trust.participations, apart),
        participations=trust.participations,
    )


def delivered(trust: "PrivateTrust", source: str, epsilon: float, delta: float = 0.0) -> Guarantee:
    """The guarantee that printed noise really delivers; warns if it is weaker than the claim."""
    claim = rounded_up(trust.epsilon) + (f", {rounded_up(trust.delta, 3)}" if trust.delta else "")
    claim = f"({claim})-{trust.notion}"
    if epsilon > trust.epsilon * (1 + 1e-9) or delta > trust.delta:
        warnings.warn(
            f"The constants of {source} claim {claim} but deliver epsilon={rounded_up(epsilon)}"
            + (f", delta={rounded_up(delta, 3)}" if delta else "")
            + " under replace-one; use calibration='exact' for a guarantee that holds.",
            DiscreetWarning,
            stacklevel=4,
        )
    return Guarantee(
        notion=trust.notion,
        epsilon=float(epsilon),
        delta=float(delta),
        assumptions=ASSUMPTIONS[trust.notion],
        claimed=f"{claim} by {source}",
    )
