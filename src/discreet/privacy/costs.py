"""What a guarantee costs, before anything is collected: noise, counts, messages, bytes."""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet import _validate
from discreet._types import JsonObject
from discreet.errors import (
    CalibrationError,
    DiscreetWarning,
    InvalidInputError,
    UnsupportedError,
)
from discreet.mdp.shape import Shape, check_shape
from discreet.privacy.guarantee import Guarantee, Implied
from discreet.privacy.mechanisms.base import (
    BatchMechanism,
    ContinualMechanism,
    Mechanism,
    Traffic,
)
from discreet.privacy.mechanisms.registry import Schedule
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import one_action
from discreet.privacy.trust import PrivateTrust, TrustModel, check_trust_model

_MOST_MEMORY = 8e9
"""Bytes of a local report while it is made."""


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """The answer of `calibrate`: plain values about one mechanism.

    Attributes:
        trust: central, local, shuffle or noprivacy.
        mechanism: the mechanism's name.
        calibration: ``"exact"`` or ``"paper"``.
        schedule: ``"batch"`` or ``"continual"``.
        users: users in the batch, or of the stream.
        shape: the problem's size.
        guarantee: what is delivered.
        participations: of one person, whom the guarantee covers.
        noise_std: standard deviation of the noise on one counter of each statistic, after all
            users; for streams at the worst time.
        noise_std_per_user: noise of one single report (local only).
        expected_count: mean of one counter if users spread evenly over states and actions.
        paper_noise_std: the same noise with the papers' constants (None where none is printed).
        delivered_by_paper: the epsilon and delta that those constants really deliver.
        claimed_by_paper: what the papers say they deliver.
        messages_per_user: messages that one device sends (None if it hands over a raw episode).
        bytes_per_user: their size. Through a shuffler both are for a deterministic policy.
        derived: statistics that are not released for themselves: another measurement of the others.
        noise_cells: shuffle by histograms only: lambda, and per kind of group its cells, the noise
            cells of each user and the probability that one is not dummy.
        parties: shuffle by histograms only: what each party sees, and both together.
        run: what all users of a learner's run send (see `run_traffic`), where a run was asked for.
        noise_bits: shuffle only: noise bits per user and counter, their probability, and how
            many fair bits the noise of a counter is as good as.
        concentrated: rho of zero-concentrated privacy, where the noise is Gaussian.
        implies: guarantees that follow, each with its reason.
    """

    trust: str
    mechanism: str
    calibration: str
    schedule: Schedule
    users: int
    shape: Shape
    guarantee: Guarantee
    noise_std: dict[str, float]
    expected_count: dict[str, float]
    noise_std_per_user: dict[str, float] | None = None
    paper_noise_std: dict[str, float] | None = None
    delivered_by_paper: dict[str, float | None] | None = None
    claimed_by_paper: str | None = None
    messages_per_user: int | None = None
    bytes_per_user: int | None = None
    noise_bits: dict[str, float] | None = None
    derived: tuple[str, ...] = ()
    noise_cells: dict[str, Any] | None = None
    parties: dict[str, str] | None = None
    run: dict[str, float] | None = None
    participations: int = 1
    concentrated: float | None = None
    implies: tuple[Implied, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        shape = self.shape
        return values | {
            "guarantee": self.guarantee.to_dict(),
            "implies": [one.to_dict() for one in self.implies],
            "shape": {"states": shape.states, "actions": shape.actions, "horizon": shape.horizon},
        }


def calibrate(
    trust: TrustModel,
    shape: Shape,
    *,
    users: int,
    schedule: Schedule = "batch",
    statistics: tuple[str, ...] | None = None,
    stationary: bool = False,
) -> CalibrationReport:
    """What a guarantee costs at this problem size, and what the papers' constants would give.

    Args:
        trust: who is trusted, and the wanted (epsilon, delta).
        shape: states, actions, horizon.
        users: users of one batch, or episodes of the stream.
        schedule: ``"batch"`` or ``"continual"``.
        statistics: which counters are released. None: all three; of histograms transitions
            but those of the last step, and rewards, which tell visits as well.
        stationary: counters pooled over steps (streams only).

    >>> from discreet.privacy import Central
    >>> report = calibrate(
    ...     Central(epsilon=1, delta=1e-6), Shape(states=4, actions=2, horizon=6), users=20_000
    ... )
    >>> round(report.noise_std["visits"], 2)
    25.35
    """
    check_trust_model(trust)
    check_shape(shape)
    _validate.truth(stationary=stationary)
    _validate.choice(("batch", "continual"), schedule=schedule)
    _validate.count(users=users)
    request = _Request(shape, schedule, statistics, users, stationary)
    mechanism = request.mechanism(trust)
    traffic, noise = _traffic(mechanism, users), _noise(mechanism, users)
    return CalibrationReport(
        trust=type(trust).__name__.lower(),
        mechanism=mechanism.name,
        calibration=trust.calibration,
        schedule=schedule,
        users=users,
        shape=shape,
        guarantee=mechanism.guarantee,
        participations=mechanism.guarantee.participations,
        noise_std=noise,
        derived=tuple(name for name in noise if name not in mechanism.statistics),
        noise_std_per_user=_noise_of_one(mechanism),
        expected_count=request.expected(noise),
        messages_per_user=traffic.messages if traffic else None,
        bytes_per_user=traffic.bytes if traffic else None,
        **mechanism.cost_facts(trust, users),
        concentrated=mechanism.concentrated(),
        implies=mechanism.implied(),
        **_printed(trust, request),
    )


@dataclass(frozen=True)
class _Request:
    """What is to be released, whoever is trusted."""

    shape: Shape
    schedule: Schedule
    statistics: tuple[str, ...] | None
    users: int
    stationary: bool

    def mechanism(self, trust: TrustModel) -> Mechanism:
        """The calibrated release."""
        if self.schedule == "continual":
            return trust.calibrate_stream(
                self.shape,
                statistics=self.statistics or STATISTICS,
                episodes=self.users,
                stationary=self.stationary,
            )
        if self.stationary:
            raise UnsupportedError(
                "Counters are pooled over steps in streams only; use schedule=continual."
            )
        return usual_batch(trust, self.shape, self.statistics)

    def expected(self, names: Iterable[str]) -> dict[str, float]:
        """Mean counts per step if users spread evenly over states and actions."""
        shape = self.shape
        pooled = shape.horizon if self.stationary else 1
        visits = self.users / (shape.states * shape.actions) * pooled
        return {n: visits / shape.states if n == "transitions" else visits for n in names}


def usual_batch(
    trust: TrustModel, shape: Shape, statistics: tuple[str, ...] | None = None
) -> BatchMechanism:
    """A batch as learners ask for it; ``statistics`` as in `calibrate`."""
    usual, last = getattr(trust.spec("batch").load(), "usual", (STATISTICS, True))
    return trust.calibrate(shape, statistics=statistics or usual, last_transitions=last)


def _noise(mechanism: Mechanism, users: int) -> dict[str, float]:
    """Of what is released, and of what a batch tells besides."""
    found = mechanism.worst_noise(users)
    if isinstance(mechanism, BatchMechanism):
        stated = mechanism.noise_variance(users)
        found |= {n: math.sqrt(stated[n]) for n in STATISTICS if n in stated and n not in found}
    return found


def _traffic(mechanism: Mechanism, users: int) -> Traffic | None:
    """What a user sends; through a shuffler while a deterministic policy is played."""
    if mechanism.guarantee.notion == "LDP":
        _check_memory(mechanism)
    support = one_action(mechanism.shape) if mechanism.guarantee.notion == "SDP" else None
    return mechanism.traffic(users, support=support)


def _check_memory(mechanism: Mechanism) -> None:
    """Refuse a report that no device and no machine holds, instead of being killed for it."""
    shape, continual = mechanism.shape, isinstance(mechanism, ContinualMechanism)
    # Measured at 2e6 rows: a number for each counter, or a list of all rows.
    needed = 8 * math.prod(shape.transitions) if continual else 80 * math.prod(shape.visits)
    if needed > _MOST_MEMORY:
        raise InvalidInputError(
            f"Expected a problem whose local reports fit into {_MOST_MEMORY / 1e9:.0f} GB of "
            f"memory, got {shape.states:,} states, {shape.actions:,} actions and horizon "
            f"{shape.horizon:,}, which take about {needed / 1e9:,.0f} GB; merge states, or trust a "
            f"curator or a shuffler (--trust central, --trust shuffle)."
        )


def run_traffic(mechanism: BatchMechanism, batches: Sequence[int]) -> dict[str, float] | None:
    """What the users of a whole run send, batch after batch; None if they send nothing encoded.

    A user takes part in one batch. Noise is shared by those of a batch, so small ones are dear.

    Args:
        mechanism: of the learner.
        batches: users of every batch.
    """
    sent = [_traffic(mechanism, users) for users in batches]
    messages = [traffic.messages for traffic in sent if traffic]
    if len(messages) < len(batches) or not messages:
        return None
    in_all = sum(n * users for n, users in zip(messages, batches, strict=True))
    largest = max(range(len(batches)), key=lambda i: messages[i])
    size = max(traffic.bytes / traffic.messages for traffic in sent if traffic)
    return {
        "batches": len(batches),
        "users": sum(batches),
        "messages_per_user": in_all / sum(batches),
        "bytes_per_user": size * in_all / sum(batches),
        "most_messages_per_user": messages[largest],
        "most_bytes_per_user": size * messages[largest],
        "users_of_the_dearest_batch": batches[largest],
        "bytes_in_all": size * in_all,
    }


def _noise_of_one(mechanism: Mechanism) -> dict[str, float] | None:
    if mechanism.guarantee.notion != "LDP":
        return None
    return {name: math.sqrt(variance) for name, variance in mechanism.noise_variance(1).items()}


def _printed(trust: TrustModel, request: _Request) -> JsonObject:
    """The papers' constants for the same request, where there are any: those of the paper asked."""
    if not isinstance(trust, PrivateTrust) or trust.rho is not None:
        return {}  # no paper prints a budget rho
    asked = trust.calibration
    calibration = "paper" if asked == "exact" else asked  # each paper has its own constants
    for name in dict.fromkeys([trust.mechanism, "auto"]):
        try:
            printed = replace(trust, mechanism=name, calibration=calibration)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DiscreetWarning)
                mechanism = request.mechanism(printed)
        except (UnsupportedError, CalibrationError):
            continue
        delivered = mechanism.guarantee
        return {
            "paper_noise_std": mechanism.worst_noise(request.users),
            "delivered_by_paper": {
                "epsilon": delivered.epsilon if math.isfinite(delivered.epsilon) else None,
                "delta": delivered.delta,
            },
            "claimed_by_paper": delivered.claimed,
        }
    return {}
