"""The two schedules of a release.

*Batch*: one release per batch of distinct users, each user in exactly one batch, so batches compose
in parallel. *Stream*: a release after every episode, one guarantee over the whole stream.

A plan is calibrated once, carries its noise parameters and its guarantee, and holds no data.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    overload,
)

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import (
    Debias,
    PrivateCounts,
    check_support,
    half_units,
    split,
    supported_counts,
)

if TYPE_CHECKING:
    from discreet.privacy.accounting.routes import Route
    from discreet.privacy.releases import ReportRelease, StreamRelease
    from discreet.privacy.trust import PrivateTrust

Draw = Callable[[int], Counts]
"""``draw(n)`` runs n fresh users and counts what they did."""


Fields: TypeAlias = dict[str, Any]
"""Fields of a plan by name, each of its own type."""


@dataclass(frozen=True)
class Traffic:
    """What one user sends in one batch.

    Attributes:
        messages: how many; one where the report goes to the analyser as it is.
        bytes: their size on the wire (`discreet.device.base`). Messages through a shuffler are
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


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchMechanism(ABC):
    """A calibrated one-shot release, used once per batch of distinct users.

    Where a batch comes from is a capability: a `CountsMechanism` releases raw counts, a
    `ReportMechanism` has an encoder for devices and releases what they sent; it can be both.

    Attributes:
        centred: rewards are released as sums of r - 1/2 (see `PrivateCounts`).
        last_transitions: transitions of the last step are released too.
    """

    shape: Shape
    statistics: tuple[str, ...]
    mechanism: str
    guarantee: Guarantee
    centred: bool = False
    last_transitions: bool = True

    @abstractmethod
    def noise_variance(self, users: int) -> dict[str, float]:
        """Noise variance on one counter of each released statistic, for a batch of ``users``."""

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

    @abstractmethod
    def simulate(
        self, draw: Draw, users: int, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Release a simulated batch; ``draw(n)`` runs n fresh users."""

    def traffic(self, users: int, *, support: BoolArray | None = None) -> Traffic | None:
        """What a user's device sends; None where users hand over raw episodes."""
        return None

    def accountings(self, users: int, *, with_library: bool = False) -> "list[Route]":
        """Independent accountings of this release (see `calibration.cross_check`), if any."""
        return []


class BatchSize(NamedTuple):
    """What a batch mechanism is designed for."""

    shape: Shape
    statistics: tuple[str, ...]
    last_transitions: bool

    def check(self) -> None:
        """Refuse a batch that would release nothing."""
        some = self.last_transitions or self.shape.horizon > 1
        if set(self.statistics) == {"transitions"} and not some:
            raise InvalidInputError(
                "Expected something to release, got the transitions of one step without those of "
                "the last one; ask for rewards, or for last_transitions=True."
            )


class DesignedBatch(BatchMechanism):
    """A batch whose mechanism says which fields deliver the trust model's promise."""

    name: ClassVar[str]
    """Of the mechanism, unless a caller registers it under another one."""

    @classmethod
    def calibrate(
        cls,
        trust: "PrivateTrust",
        shape: Shape,
        *,
        statistics: tuple[str, ...],
        last_transitions: bool = True,
        **_: object,
    ) -> Self:
        """A plan for the statistics of an MDP that delivers the trust model's promise.

        Transitions of the last step are released unless they are not needed and the mechanism
        gains by leaving them out.
        """
        size = BatchSize(shape, statistics, last_transitions)
        fields = cls._designed(trust, size)
        return cls(shape=shape, statistics=statistics, mechanism=cls.name, **fields)

    @classmethod
    @abstractmethod
    def _designed(cls, trust: "PrivateTrust", size: BatchSize) -> Fields:
        """The fields that a mechanism adds: its guarantee, what it draws, what it leaves out."""


class CountsMechanism(BatchMechanism):
    """A batch that can be released from its raw counts."""

    @abstractmethod
    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Release one batch. ``support`` marks the (h, s, a) its public policy can reach."""

    def simulate(
        self, draw: Draw, users: int, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Draw all users at once and release their counts."""
        _validate.count(users=users)
        return self.release(draw(users), sampler=sampler, support=support)


class ReportMechanism(BatchMechanism):
    """A batch whose users encode their episodes on their own devices (local and shuffle)."""

    @abstractmethod
    def encoder(self, users: int, *, support: BoolArray | None = None) -> Encoder:
        """What runs on the device of each of ``users`` users."""

    def traffic(self, users: int, *, support: BoolArray | None = None) -> Traffic | None:
        """What a user's device sends."""
        return self.encoder(users, support=support).traffic

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
        return self._from_reports(
            _table(reports), users, check_support(support, self.shape), secure
        )

    def _from_reports(
        self, reports: IntArray, users: int, support: BoolArray, secure: bool
    ) -> PrivateCounts:
        """What `add_up` found, without its bias."""
        released, estimate = self.add_up(reports, users, support)
        return batch_release(self, released, users, support, secure=secure, estimate=estimate)

    @abstractmethod
    def add_up(
        self, reports: IntArray, users: int, support: BoolArray
    ) -> tuple[dict[str, IntArray], Debias]:
        """Sums of the reports by statistic, as rows, and how to take their bias out.

        Refuses reports that the encoders of these users cannot have sent.
        """


def _table(reports: object) -> IntArray:
    """Reports as an array; what is in it is for the mechanism to judge."""
    try:
        return np.asarray(reports)
    except ValueError:
        raise InvalidInputError(
            "badReport: Expected reports as a table of integers, got rows of different lengths; "
            "hand over the messages of all users one below the other. Nothing was released."
        ) from None


def with_counts(plan: BatchMechanism) -> CountsMechanism:
    """The plan, if it releases raw counts.

    Raises:
        UnsupportedError: its users report different things, which their sums do not determine.
    """
    if isinstance(plan, CountsMechanism):
        return plan
    raise UnsupportedError(
        f"A batch of the mechanism {plan.mechanism!r} cannot be made from the counts of all its "
        f"users: each of them reports something else. Use `simulate` (users drawn one group after "
        f"the other) or `encoder` and `release_reports`."
    )


class Timed:
    """Something that is released after every one of ``episodes`` users."""

    episodes: int

    def times(self, asked: IntArray | None) -> IntArray:
        """These numbers of users, or 1, 2, ..., ``episodes``."""
        return np.arange(1, self.episodes + 1) if asked is None else asked


@dataclass(frozen=True, eq=False, kw_only=True)
class ContinualMechanism(Timed, ABC):
    """A calibrated continual release: cumulative statistics after every one of ``episodes``.

    Users of a `ContinualReportMechanism` encode on their own devices.
    """

    shape: Shape
    statistics: tuple[str, ...]
    mechanism: str
    guarantee: Guarantee
    episodes: int
    stationary: bool = False
    name: ClassVar[str]
    """Of the mechanism, unless a caller registers it under another one."""
    response: ClassVar[Literal["unit", "cell", "category"]] = "unit"
    """What one step of a user adds to the released counters, see `StreamBlock`."""

    @classmethod
    def calibrate(
        cls,
        trust: "PrivateTrust",
        shape: Shape,
        *,
        statistics: tuple[str, ...],
        episodes: int,
        stationary: bool,
        **options: float,
    ) -> Self:
        """A plan for the statistics of an MDP that delivers the trust model's promise."""
        size = StreamSize(shape, statistics, episodes, stationary)
        return cls(
            shape=shape,
            statistics=statistics,
            mechanism=cls.name,
            episodes=episodes,
            stationary=stationary,
            **cls._designed(trust, size, **options),
        )

    @classmethod
    @abstractmethod
    def _designed(cls, trust: "PrivateTrust", size: "StreamSize", **options: float) -> Fields:
        """The fields that a mechanism adds: what it draws, and what that delivers."""

    @abstractmethod
    def noise_variance(self, episode: int) -> dict[str, float]:
        """Noise variance on one counter of each statistic, released after ``episode`` users."""

    @abstractmethod
    def error_bound(self, episode: int, failure: float) -> float:
        """A bound that |noise| on one counter exceeds with probability at most ``failure``."""

    def error_bounds(self, failure: float, users: IntArray | None = None) -> FloatArray:
        """`error_bound` after so many users each; after 1, 2, ..., ``episodes`` if not given."""
        return np.array([self.error_bound(int(k), failure) for k in self.times(users)])

    @abstractmethod
    def open(self, sampler: Sampler) -> "StreamRelease":
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


class StreamSize(NamedTuple):
    """What a stream mechanism is designed for."""

    shape: Shape
    statistics: tuple[str, ...]
    episodes: int
    stationary: bool


class ContinualReportMechanism(ContinualMechanism):
    """A stream whose users encode on their own devices (local)."""

    @abstractmethod
    def encoder(self) -> Encoder:
        """What runs on every user's device."""

    @abstractmethod
    def open(self, sampler: Sampler) -> "ReportRelease":
        """Start a stream; it takes counts (`add`) or reports (`add_report`)."""


@overload
def with_reports(plan: BatchMechanism) -> ReportMechanism: ...
@overload
def with_reports(plan: ContinualMechanism) -> ContinualReportMechanism: ...
def with_reports(
    plan: BatchMechanism | ContinualMechanism,
) -> ReportMechanism | ContinualReportMechanism:
    """The plan, if its users encode on their own devices.

    Raises:
        UnsupportedError: it has no encoder.
    """
    if isinstance(plan, ReportMechanism | ContinualReportMechanism):
        return plan
    raise UnsupportedError(
        f"The mechanism {plan.mechanism!r} takes raw counts, not reports, and has no encoder: its "
        f"users hand raw episodes to a trusted learner; use Local or Shuffle to encode on the "
        f"device."
    )


NoiseOf = Callable[[str, int], IntArray]
"""``draw(statistic, n)`` returns n independent integers of mean zero."""


def noisy_batch(
    plan: BatchMechanism,
    counts: Counts,
    draw: NoiseOf,
    *,
    secure: bool,
    support: BoolArray | None,
) -> PrivateCounts:
    """Add noise to the counters that the batch's policy can touch; all others stay exactly zero.

    Args:
        plan: carries the statistics and the guarantee.
        counts: the raw counts of the batch.
        draw: the noise.
        secure: whether ``draw`` protects real people.
        support: ``bool[H, S, A]`` or None for everything.
    """
    if plan.centred:
        return _centred_batch(plan, counts, draw, check_support(support, plan.shape), secure)
    return randomised_batch(
        plan, counts, lambda name, raw: raw + draw(name, raw.size), secure=secure, support=support
    )


HALF = Debias(scale=0.5)
"""What half units are worth."""


def _centred_batch(
    plan: BatchMechanism, counts: Counts, draw: NoiseOf, mask: BoolArray, secure: bool
) -> PrivateCounts:
    """As `noisy_batch`, in half units; rows without transitions carry no noise either."""
    raw = half_units(
        supported_counts(counts, plan.shape, mask), last_transitions=plan.last_transitions
    )
    steps = np.nonzero(mask)[0]
    kept = len(steps) if plan.last_transitions else int((steps < plan.shape.horizon - 1).sum())
    moved = raw["transitions"][:kept]  # rows are in the order of their steps
    moved += draw("transitions", moved.size).reshape(moved.shape)
    left = raw.pop("left")
    raw["rewards"] = raw["rewards"] + draw("rewards", raw["rewards"].size)
    gone = {"transitions": HALF("transitions", left + draw("left", left.size))}
    return batch_release(plan, raw, counts.users, mask, secure=secure, estimate=HALF, left=gone)


def randomised_batch(
    plan: BatchMechanism,
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
    mask = check_support(support, plan.shape)
    kept = supported_counts(counts, plan.shape, mask)
    released: dict[str, IntArray] = {}
    for name in plan.statistics:
        raw: IntArray = getattr(kept, f"row_{name}")
        released[name] = np.asarray(randomise(name, raw.ravel())).reshape(raw.shape)
    return batch_release(plan, released, counts.users, mask, secure=secure, estimate=estimate)


def batch_release(
    plan: BatchMechanism,
    released: Mapping[str, IntArray],
    users: int,
    support: BoolArray,
    *,
    secure: bool,
    estimate: Debias | None = None,
    left: Mapping[str, FloatArray] | None = None,
    noise_variance: Mapping[str, float] | None = None,
) -> PrivateCounts:
    """`PrivateCounts` of a batch from its released integers by name, dense or as rows.

    ``noise_variance`` is the plan's, unless the batch has its own.
    """
    debiased = estimate or Debias()
    values = {name: debiased(name, integers) for name, integers in released.items()}
    return PrivateCounts(
        users=users,
        transitions=values.get("transitions"),
        visits=values.get("visits"),
        rewards=values.get("rewards"),
        noise_variance=noise_variance or plan.noise_variance(users),
        support=support,
        guarantee=plan.guarantee.stamped(secure=secure),
        centred=plan.centred,
        last_transitions=plan.last_transitions,
        left=left,
    )


def unflatten(
    values: FloatArray, plan: ContinualMechanism, episode: int, *, secure: bool
) -> PrivateCounts:
    """Cumulative private statistics from a vector laid out as `flatten` does."""
    steps = 1 if plan.stationary else plan.shape.horizon
    parts = split(values, plan.shape, plan.statistics, steps=steps)
    return PrivateCounts(
        users=episode,
        transitions=parts.get("transitions"),
        visits=parts.get("visits"),
        rewards=parts.get("rewards"),
        noise_variance=plan.noise_variance(episode),
        support=np.ones((steps, *plan.shape.visits[1:]), np.bool_),
        guarantee=plan.guarantee.stamped(secure=secure),
    )
