"""`audit`: every mechanism, by calculation and by attack."""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import _validate
from discreet.errors import UnsupportedError
from discreet.privacy.auditing.conformance import TOLERANCE
from discreet.privacy.auditing.empirical import epsilon_low, samples
from discreet.privacy.auditing.linear import Additive, additive
from discreet.privacy.auditing.neighbours import Plan
from discreet.privacy.auditing.printed_messages import IntegerMessages
from discreet.privacy.auditing.reports import Enumerated
from discreet.privacy.auditing.roster import Entry, entries, find
from discreet.privacy.plans import BatchPlan, StreamPlan
from discreet.privacy.sampling.samplers import SimulationSampler

_BATCHES = (1, 1000, 100_000)
"""Batch sizes at which shuffled noise is audited: many, one and rare bits per user."""
INTEGERS = "shuffle/integers"
"""The protocol of papers 000 and 001 to the letter; the library sends bits instead."""
_RUNS, _QUICK_RUNS = 5_000, 500


@dataclass(frozen=True)
class AuditRow:
    """What one mechanism claims, what it delivers, and what an attack could prove.

    Attributes:
        mechanism: its name.
        calibration: exact or paper.
        epsilon: the claim.
        delta: the claim.
        exact_epsilon: what the real code path delivers at the claimed delta (inf: nothing).
        exact_delta: what it delivers at the claimed epsilon (nan: only bounds are known).
        empirical_epsilon_low: no smaller epsilon is possible, with confidence 1 - 1e-6.
        notion: JDP, LDP or SDP.
    """

    mechanism: str
    calibration: str
    epsilon: float
    delta: float
    exact_epsilon: float
    exact_delta: float
    empirical_epsilon_low: float
    notion: str

    @property
    def holds(self) -> bool:
        """The claim is true, as far as calculation and attack can tell."""
        return max(self.exact_epsilon, self.empirical_epsilon_low) <= self.epsilon * (1 + TOLERANCE)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite or unknown is null."""
        return {
            "mechanism": self.mechanism,
            "calibration": self.calibration,
            "notion": self.notion,
            "claimed": {"epsilon": self.epsilon, "delta": self.delta},
            "exact_epsilon": _finite(self.exact_epsilon),
            "exact_delta": _finite(self.exact_delta),
            "empirical_epsilon_low": self.empirical_epsilon_low,
            "holds": self.holds,
        }


def audit(
    mechanisms: Sequence[str] = (),
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    quick: bool = False,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[AuditRow]:
    """Audit mechanisms at (epsilon, delta), all of them by default.

    Args:
        mechanisms: names such as ``"central/gaussian"``, ``"gaussian"`` or ``"central"``.
        epsilon: to calibrate to.
        delta: to calibrate to (mechanisms with a pure epsilon are held to delta = 0).
        quick: fewer runs of the attacks; calculations are the same.
        seed: of the attacked noise.
        progress: told the name of each mechanism before its turn.

    >>> [row] = audit(["central/laplace"], quick=True)
    >>> row.exact_epsilon, row.holds
    (1.0, True)
    """
    _validate.positive(epsilon=epsilon)
    _validate.delta(delta=delta)
    names = [name for name in mechanisms if name != INTEGERS]
    chosen = [e for name in names for e in find(name, epsilon=epsilon, delta=delta)]
    rows = []
    if not mechanisms:
        chosen = list(entries(epsilon=epsilon, delta=delta))
    for entry in dict.fromkeys(chosen):
        progress(f"{entry.name} ({entry.calibration})")
        rows.append(_row(entry, _QUICK_RUNS if quick else _RUNS, seed))
    if not mechanisms or {INTEGERS, "shuffle", "bits"} & set(mechanisms):
        progress(f"{INTEGERS} (paper)")
        rows.append(_printed_messages(epsilon, delta, _QUICK_RUNS if quick else _RUNS, seed))
    return rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def exact_view(plan: Plan, users: int = 1) -> Additive | Enumerated:
    """The plan's exact privacy, by the route that fits it."""
    try:
        return additive(plan, users=users)
    except UnsupportedError:
        if plan.guarantee.notion != "LDP":
            raise
        return Enumerated(plan)


def _row(entry: Entry, runs: int, seed: int) -> AuditRow:
    plan = entry.plan()
    epsilon, delta = entry.claimed
    sizes = _BATCHES if entry.trust == "shuffle" else (1,)
    views = [exact_view(plan, users) for users in sizes]
    return AuditRow(
        mechanism=entry.name,
        calibration=entry.calibration,
        epsilon=epsilon,
        delta=delta,
        exact_epsilon=max(view.epsilon(delta) for view in views),
        exact_delta=max(view.delta(epsilon) for view in views),
        empirical_epsilon_low=_attack(entry.target(), delta, runs, seed),
        notion=plan.guarantee.notion,
    )


def _printed_messages(epsilon: float, delta: float, runs: int, seed: int) -> AuditRow:
    """The protocol that the papers print, at its worse crowd."""
    view = IntegerMessages(epsilon, delta, crowd=1)
    sampler = SimulationSampler(np.random.default_rng([seed, 1]))
    return AuditRow(
        mechanism=INTEGERS,
        calibration="paper",
        epsilon=epsilon,
        delta=delta,
        exact_epsilon=view.epsilon(delta),
        exact_delta=view.delta(epsilon),
        empirical_epsilon_low=epsilon_low(*view.samples(sampler, runs), delta),
        notion="SDP",
    )


def _attack(plan: Plan, delta: float, runs: int, seed: int) -> float:
    if isinstance(plan, StreamPlan):
        runs = max(200, runs // 5)
    name = f"{plan.guarantee.notion}/{plan.mechanism}/{isinstance(plan, BatchPlan)}"
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return epsilon_low(*samples(plan, SimulationSampler(rng), runs), delta)
