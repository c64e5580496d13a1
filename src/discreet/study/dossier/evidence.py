"""What is proven and attacked for a dossier, now: certificates and an audit of this very mechanism.

Three kinds of evidence about the noise, on code that shares nothing:

- a *certificate*: delta(epsilon) of the mechanism's noise, at this shape, bounded with integers
  (`privacy.certificates`);
- the *exact audit at this shape*: the real release function is run with preset draws, and the
  distribution of its outputs computed from how draws and data enter, where that is feasible;
- an *attack at this shape*: many releases of two neighbouring data sets, a test learnt on half of
  them and counted on the other half; and the audit of every path of the mechanism, small.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray
from discreet.auditing.attack import CONFIDENCE, epsilon_bound, epsilon_low
from discreet.auditing.cases import entries
from discreet.auditing.examine import TOLERANCE, examine
from discreet.auditing.neighbours import Episode, everything, opposites, total
from discreet.auditing.paths import RELEASE, batch_path
from discreet.auditing.run import AuditRow, audit
from discreet.errors import DiscreetError
from discreet.privacy.certificates.document import certify
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.sampling.samplers import Sampler, SimulationSampler

Progress = Callable[[str], None]
_MOST_CELLS = 2_500
"""Counters up to which the exact audit runs at the study's own shape: half a minute, about."""
_USERS = 3
_RUNS = 400
_MOST_CERTIFICATES = 3


@dataclass(frozen=True)
class Proof:
    """One certificate, or why there is none.

    Attributes:
        users: of the batch; None: of every batch.
        sentence: what was found.
        text: the file, empty if there is none.
        digest: of the certificate.
    """

    users: int | None
    sentence: str
    text: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Examined:
    """What the audit found.

    Attributes:
        exact: epsilon that the release delivers at this shape and delta; None: not computed.
        unlisted: why not.
        attacked: no smaller epsilon is possible, by the attack at this shape.
        runs: releases of each of two neighbours that the attack watched.
        rows: every path of the mechanism at a small shape.
        name: of the mechanism in `discreet audit`.
        problems: what depends on data and must not.
    """

    exact: float | None
    unlisted: str
    attacked: float
    runs: int
    rows: tuple[AuditRow, ...]
    name: str
    problems: tuple[str, ...]

    def holds(self, epsilon: float) -> bool:
        """No evidence contradicts the guarantee."""
        largest = max(self.exact or 0.0, self.attacked)
        return (
            largest <= epsilon * (1 + TOLERANCE)
            and not self.problems
            and all(row.holds for row in self.rows)
        )

    def reach(self, epsilon: float) -> float:
        """What the attack would prove, about, of a release that leaks ``epsilon`` in one bit.

        No release with this pure guarantee is told apart more often than randomised response: the
        bit is right with probability e^epsilon/(1 + e^epsilon). Half of the tries choose the test.
        """
        count = self.runs // 2
        right = round(count / (1 + math.exp(-epsilon)))
        fired = np.arange(count) < right
        level = 1 - (1 - CONFIDENCE) / 2
        return max(0.0, epsilon_bound(fired, ~fired, 0.0, level))


def proofs(mechanism: BatchMechanism, sizes: Sequence[int], progress: Progress) -> list[Proof]:
    """Certificates of a mechanism.

    Args:
        mechanism: the study's.
        sizes: of its batches; shuffled bits are certified batch by batch, the largest ones.
        progress: called with what is under way.
    """
    if mechanism.guarantee.notion == "none":
        return [Proof(None, "There is no noise, and nothing to certify.")]
    if not mechanism.per_batch:
        return [_proof(mechanism, None, progress)]
    chosen = sorted(set(sizes), reverse=True)[:_MOST_CERTIFICATES]
    return [_proof(mechanism, users, progress) for users in chosen]


def _proof(mechanism: BatchMechanism, users: int | None, progress: Progress) -> Proof:
    """A certificate; what cannot be certified is said, not hidden."""
    try:
        made = certify(mechanism, users=users, progress=progress)
    except DiscreetError as error:
        return Proof(users, f"No certificate: {error}")
    if not made.holds:
        return Proof(users, made.sentence())
    data = made.to_dict()
    return Proof(users, made.sentence(), json.dumps(data, indent=1), str(data["digest"]))


def examined(mechanism: BatchMechanism, trust: str, progress: Progress) -> Examined:
    """The audit of a mechanism that guarantees something, run now.

    Args:
        mechanism: the study's.
        trust: name of its trust model.
        progress: called with what is under way.
    """
    exact, problems, unlisted = _exact(mechanism, progress)
    progress("an attack at this shape")
    attacked = _attack(mechanism)
    name, rows = _paths(mechanism, trust, progress)
    return Examined(exact, unlisted, attacked, _RUNS, rows, name, problems)


def _exact(
    mechanism: BatchMechanism, progress: Progress
) -> tuple[float | None, tuple[str, ...], str]:
    """What the release delivers at this shape, what is wrong with it, why it is not known."""
    cells = sum(math.prod(_size(mechanism, name)) for name in mechanism.statistics)
    too_many = mechanism.guarantee.notion == "LDP"
    if too_many or not mechanism.takes_counts:
        return None, (), "outcomes of reports are too many to list"
    if cells > _MOST_CELLS:
        return None, (), f"{cells:,} counters are too many (at most {_MOST_CELLS:,})"
    progress(f"the release at this shape, {cells:,} counters")
    found = examine(batch_path(mechanism, RELEASE, max(_USERS, mechanism.min_users)), secure=True)
    exact = None if found.view is None else float(found.view.epsilon(mechanism.guarantee.delta))
    return exact, found.problems, found.unlisted


def _size(mechanism: BatchMechanism, statistic: str) -> tuple[int, ...]:
    return mechanism.shape.transitions if statistic == "transitions" else mechanism.shape.visits


def _attack(mechanism: BatchMechanism) -> float:
    """A lower bound on epsilon from what is seen of two neighbours."""
    usual, other = opposites(mechanism.shape)
    sampler = SimulationSampler(np.random.default_rng(0))
    seen = [
        np.array([_seen(mechanism, user, usual, sampler) for _ in range(_RUNS)])
        for user in (usual, other)
    ]
    varying = (np.ptp(seen[0], axis=0) + np.ptp(seen[1], axis=0)) > 0
    constant = ~varying & (seen[0][0] != seen[1][0])
    if constant.any():
        return math.inf
    # The outputs whose means differ most on the first half: a test on few is sharper.
    one, two = (part[: _RUNS // 2, varying] for part in seen)
    gap = np.abs(one.mean(axis=0) - two.mean(axis=0)) / (one.std(axis=0) + two.std(axis=0) + 1e-9)
    first, second = (part[:, varying][:, np.argsort(-gap)[:40]] for part in seen)
    return epsilon_low(first, second, mechanism.guarantee.delta)


def _seen(mechanism: BatchMechanism, user: Episode, usual: Episode, sampler: Sampler) -> FloatArray:
    """What becomes visible of one user: a report, or the release of the smallest batch."""
    if mechanism.guarantee.notion == "LDP":
        report = mechanism.encoder().encode(user.states, user.actions, user.rewards, sampler)
        return np.ravel(report).astype(np.float64)
    crowd = [user] + [usual] * (max(_USERS, mechanism.min_users) - 1)
    released = mechanism.release(total(crowd, mechanism.shape), sampler=sampler)
    return everything(released)


def _paths(
    mechanism: BatchMechanism, trust: str, progress: Progress
) -> tuple[str, tuple[AuditRow, ...]]:
    """The mechanism's name, and every path of it at a small shape with this epsilon and delta."""
    guarantee = mechanism.guarantee
    epsilon, delta = guarantee.epsilon, guarantee.delta or 1e-6
    found = [
        entry
        for entry in entries(epsilon=epsilon, delta=delta)
        if (entry.trust, entry.mechanism, entry.schedule, entry.calibration)
        == (trust, mechanism.name, "batch", "exact")
    ]
    centred = [entry for entry in found if entry.centred == mechanism.centred]
    for entry in centred or found:
        rows = audit([entry.name], epsilon=epsilon, delta=delta, quick=True, progress=progress)
        return entry.name, tuple(row for row in rows if row.calibration == "exact")
    return f"{trust}/{mechanism.name}", ()
