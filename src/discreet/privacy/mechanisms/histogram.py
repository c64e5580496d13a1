"""Shuffle by groups: one data cell and a few noise cells per group, and the same exact noise.

**The protocol.** A group is a statistic at a step. Its D cells are the counters that the batch's
public policy can touch there, and ``dropped_out``, which stands for a user who has left the policy,
at this step or before. For every group each of n users sends one data cell and K noise cells; a
noise cell is uniform over the D cells with probability q and ``dummy`` otherwise. With lambda, the
wanted mean of all noise on one cell, K = ceil(D·lambda/n) and q = Q/2^32 for the least integer Q
that reaches it (`discreet.device.histogram`). A message is the number of a cell inside its group.
The shuffler permutes all messages of a group together, over all users. Cells of rewards are (s, a,
1) and (s, a, 0): half their difference is the sum of r - 1/2, with noise of variance lambda/2, and
their sum is another measurement of the visits, of variance 2·lambda. The two are uncorrelated.

**Proof.** (1) *The view is one histogram per group.* Everybody sends exactly 1 + K messages in
every group, whatever happened; after a uniform permutation of a group the messages are a function
of its histogram over D cells and dummy, and of fresh randomness. (It would not be so if each user's
messages were permuted by themselves: they would then travel together.) Groups are encoded with
independent randomness and independent noise, so the view is a product over groups.

(2) *A user moves one unit per group.* What a user sends in a group is a function of that user's
episode, of the public policy and of private randomness. It is always exactly one data cell: without
``dropped_out`` the totals of a group would say how many users had left, without any noise. Replace
the user: in each group at most one unit moves from a cell a to a cell b. Nothing moves where a = b,
and a pair that does not differ is a post-processing of any other. A reward in [0, 1] is rounded to
a bit on the device; for every pair of bits the bound holds, hence for their mixtures.

(3) *One group.* Let m >= floor(f·n) be the users whose noise can be relied on. The noise messages
of the others, and all other data, are a fixed histogram that the analyser may know: it is
subtracted. What is left of the view is e_a + N or e_b + N, with N the histogram of T = m·K noise
messages, multinomial with probability p = q/D on each cell. So the likelihood ratio at y is
y_a/y_b, and `accounting.shuffle_curves` knows its distribution exactly.

(4) *All of them.* H groups for rewards and for visits, H for transitions, or H - 1 where nobody
needs those of the last step: the losses add up. `groups_mean` is the least mean that delivers
(epsilon, delta) in the limit of many rare noise messages; T·p is at least that, because Q was
rounded up; and that the finite T and p of a batch are no worse than the limit is checked before a
device is told about it and before a batch of real people is released (`check_batch`). A simulated
batch is checked for the mean of its noise: it protects nobody, says so, and has the same noise
either way; its curve, which takes a hundred times as long as its release, is left out. []

The noise is spread over exactly n users. A batch that is released with fewer of them has less of it
(epsilon = 1.46 instead of 1 at half of them): the analyser refuses one that is not complete.
A person who is in m batches moves m times as many groups: mean and messages are calibrated for all
of them together (`discreet.privacy.sensitivity`); others' batches cost her nothing. Four times the
participations take about four times the mean, hence twice the noise and four times the messages.

**What each party sees.** The analyser: histograms, hence (epsilon, delta). The shuffler: who sent,
and that there are as many sealed messages as from everybody else. Both together: the episode; there
is no local guarantee to fall back on. Somebody who lies moves a counter by at most 1 + K per group.

`release` simulates a batch at the level of counts: the histogram of all noise messages is one
multinomial draw, whatever n is. `HistogramEncoder`, `shuffle` and `release_reports` are the real
thing.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray, IntArray, JsonObject, Plain
from discreet.device.draws import WORD
from discreet.device.histogram import MessageGroup, layout
from discreet.device.wire import ENVELOPE
from discreet.errors import InvalidInputError
from discreet.mdp.counts import Counts
from discreet.privacy.accounting.closed_forms import NOT_SHUFFLED, need_delta
from discreet.privacy.accounting.piles import honest_users, least_crowd, mean_of_all
from discreet.privacy.accounting.shuffle_curves import (
    Trials,
    batch_trials,
    check_batch,
    check_means,
    groups_mean,
)
from discreet.privacy.guarantee import Guarantee, shuffled
from discreet.privacy.mechanisms._devices import HistogramEncoder
from discreet.privacy.mechanisms.base import (
    AuditSizes,
    BatchMechanism,
    Certified,
    Request,
    Traffic,
)
from discreet.privacy.mechanisms.cells import Cells
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.sensitivity import CENTRED
from discreet.privacy.statistics import (
    Debias,
    PrivateCounts,
    check_support,
    one_action,
    supported_counts,
)

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust, Shuffle, TrustModel

PARTIES = {
    "analyser": "noisy histograms: what is guaranteed",
    "shuffler": "who sent, and as many sealed messages as from everybody else",
    "if both collude": "none (they see the episode)",
}
"""What each party sees of one user."""

_layout = functools.lru_cache(maxsize=256)(layout)

_LARGEST_BATCH = 10**12
"""Users: more than there are; noise messages of a group then still are 64-bit integers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HistogramBatch(BatchMechanism):
    """One data cell among a few noise cells per group: kilobytes per user, exact noise.

    Attributes:
        epsilon: guaranteed.
        delta: guaranteed.
        moves: groups, in each of which one person moves a unit, of all batches she is in.
        mean: of the noise on one cell that honest users must add together.
        honest: fraction of users whose noise can be relied on.
        least: users of a batch, as its trust model asks.
    """

    epsilon: float
    delta: float
    moves: int
    mean: Fraction
    honest: float = 1.0
    least: int = 0
    audit: ClassVar[AuditSizes] = AuditSizes(statistics=CENTRED, last_transitions=False)
    usual: ClassVar[tuple[tuple[str, ...], bool]] = (CENTRED, False)
    """The statistics that learners ask for, and whether with the last transitions."""

    @classmethod
    def designed(
        cls, spec: MechanismSpec, trust: "PrivateTrust", request: Request
    ) -> dict[str, Any]:
        # How many noise cells each user adds depends on the batch (`groups`).
        need_delta(trust.delta, "Shuffle noise", NOT_SHUFFLED)
        request.check()
        last = request.last_transitions
        moves = request.moved(trust.participations).moves
        epsilon, delta = float(trust.epsilon), float(trust.delta)
        shuffled = cast("Shuffle", trust)  # no other trust model knows this mechanism
        return {
            "guarantee": _guarantee(shuffled),
            "centred": True,
            "last_transitions": last,
            "epsilon": epsilon,
            "delta": delta,
            "moves": moves,
            "mean": groups_mean(moves, epsilon, delta),
            "honest": float(shuffled.honest),
            "least": shuffled.min_users,
        }

    @property
    def min_users(self) -> int:
        """Two (nobody is hidden alone), one of them honest, and as the trust model asks."""
        return max(2, self.least, least_crowd(self.honest))

    @property
    def takes_reports(self) -> bool:
        return True

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        """With the users of the batch, or for every batch."""
        honest = str(_validate.exact(self.honest))
        return super().release_facts(users) | {"users": users, "honest": honest}

    def certified(self, users: int | None = None) -> Certified:
        """The messages of a batch's reliable users, or, for every batch, the limit of rare ones.

        A deterministic policy: whatever is played, only D changes, and with it K.
        """
        if users is None:
            return "poisson", {"mean": self.mean}
        kinds = {one.cells: one for one in self.groups(users, one_action(self.shape))}.values()
        return "histogram", {
            "trials": [self.reliable(users) * one.noise for one in kinds],
            "probability": [Fraction(one.weight, WORD * one.cells) for one in kinds],
        }

    def cost_facts(self, trust: "TrustModel", users: int) -> JsonObject:
        """The noise cells of every user, and who sees what."""
        groups = self.groups(users, one_action(self.shape))
        widest = {one.statistic: one for one in sorted(groups, key=lambda one: one.cells)}
        return {
            "noise_cells": {
                "groups": len(groups),
                "mean_per_cell": float(self.intensity(users)),
                "lambda": str(self.intensity(users)),
                "of": {
                    name: {
                        "cells": one.cells,
                        "per_user": one.noise,
                        "probability": one.weight / WORD,
                    }
                    for name, one in widest.items()
                },
            },
            "parties": dict(PARTIES),
        }

    def reliable(self, users: int) -> int:
        """How many of ``users`` users are counted on to add noise."""
        return honest_users(self.honest, users)

    def intensity(self, users: int) -> Fraction:
        """lambda: the mean of all users' noise on one cell, so that the reliable ones suffice."""
        _validate.count(users=users)
        _validate.at_most(_LARGEST_BATCH, "use smaller batches", users=users)
        return mean_of_all(self.mean, self.honest, users)

    def groups(self, users: int, support: BoolArray | None = None) -> tuple[MessageGroup, ...]:
        """All groups of a batch, in the order in which devices send them."""
        mask, mean = check_support(support, self.shape), self.intensity(users)
        return _layout(
            tuple(mask.sum(axis=(1, 2)).tolist()),
            self.shape.states,
            self.statistics,
            last_transitions=self.last_transitions,
            users=users,
            mean=(mean.numerator, mean.denominator),
        )

    def trials(self, users: int, support: BoolArray | None = None) -> tuple[Trials, ...]:
        """The noise that the reliable users of a batch add, group by group, equal ones together."""
        return batch_trials(self.groups(users, support), self.reliable(users))

    def noise_variance(self, users: int) -> dict[str, float]:
        """Of one counter, at most: binomial noise has a variance below its mean.

        Visits that were not asked for are those of the rewards' two cells. A release states the
        variances of its own groups.
        """
        mean = float(self.intensity(users)) + users / 2**33  # Q is rounded up, in two cells or more
        variance = dict.fromkeys(self.statistics, mean)
        if "rewards" in self.statistics:
            variance = {"visits": 2 * mean} | variance | {"rewards": mean / 2}
        return variance

    def release(
        self, counts: Counts, *, sampler: Sampler, support: BoolArray | None = None
    ) -> PrivateCounts:
        """Simulate encoders, shuffler and analyser at once: histograms with their noise."""
        mask, users = check_support(support, self.shape), counts.users
        groups = self._checked(users, mask, real=sampler.secure)
        kept, last = supported_counts(counts, self.shape, mask), self.last_transitions
        cells = Cells.of(kept, mask, self.statistics, last_transitions=last)
        for one in groups:
            noise = sampler.scatter(users * one.noise, one.weight / WORD, one.cells)
            cells.add(one.statistic, one.step, noise)
        return self._published(groups, cells, users, secure=sampler.secure)

    def traffic(self, users: int, *, support: BoolArray | None = None) -> Traffic:
        """Every message is sealed and takes the 52 bytes of its envelope."""
        messages = sum(one.messages for one in self.groups(users, support))
        return Traffic(messages, ENVELOPE * messages)

    def encoder(self, users: int = 1, *, support: BoolArray | None = None) -> HistogramEncoder:
        """What runs on the device of each of ``users`` users."""
        self._checked(users, support)
        return HistogramEncoder.of(
            self.shape,
            self.statistics,
            check_support(support, self.shape),
            last_transitions=self.last_transitions,
            users=users,
            mean=self.intensity(users),
        )

    def _from_reports(
        self, reports: IntArray, users: int, support: BoolArray, secure: bool
    ) -> PrivateCounts:
        """Release a batch from the shuffled messages ``(group, cell)`` of all its users.

        Or from how often each was sent: ``(group, cell, times)``, which is much less to keep.
        Nothing is released unless every group has exactly ``users·(1 + K)`` messages.
        """
        cells, groups = self._histograms(reports, users, support), self.groups(users, support)
        return self._published(groups, cells, users, secure=secure)

    def add_up(
        self, reports: IntArray, users: int, support: BoolArray
    ) -> tuple[dict[str, IntArray], Debias]:
        """The analyser's counters, and how to take their noise's mean out."""
        cells = self._histograms(reports, users, support)
        return cells.counters(), cells.worth(_means(self.groups(users, support), users))

    def _checked(
        self, users: int, support: BoolArray | None, *, real: bool = True
    ) -> tuple[MessageGroup, ...]:
        """The groups, if the proof covers them; a crowd and curves are for ``real`` people."""
        _validate.count(users=users)
        if real and users < 2:
            raise InvalidInputError(
                f"Expected users >= 2, got users={users}: there is nobody to be mixed with; wait "
                f"for a larger batch, or use Local."
            )
        groups = self.groups(users, support)
        check = check_batch if real else check_means
        check(batch_trials(groups, self.reliable(users)), self.mean)
        return groups

    def _histograms(self, messages: IntArray, users: int, mask: BoolArray) -> Cells:
        """Messages per cell, group by group, dummies left out."""
        groups = self._checked(users, mask)
        _check_messages(messages, groups, users)
        cells = Cells.empty(mask, self.statistics, last_transitions=self.last_transitions)
        for i, one in enumerate(groups):
            own, seen = messages[messages[:, 0] == i], np.zeros(one.cells + 1, np.int64)
            np.add.at(seen, own[:, 1], _times(own))
            cells.add(one.statistic, one.step, seen[:-1])
        return cells

    def _published(
        self, groups: Sequence[MessageGroup], cells: Cells, users: int, *, secure: bool
    ) -> PrivateCounts:
        means, variances = _means(groups, users), self._variances(groups, users)
        return cells.published(self, users, secure=secure, means=means, noise_variance=variances)

    def _variances(self, groups: Sequence[MessageGroup], users: int) -> dict[str, float]:
        """Of the noise that these groups carry: T·p·(1 - p), and for both cells of a reward.

        Transitions of a single step may have no group: then what one would carry.
        """
        found: dict[str, float] = {}
        for one in groups:
            mean = _noise_mean(one, users)
            p = mean / (users * one.noise)
            each = {one.statistic: mean * (1 - p)}
            if one.statistic == "rewards":
                each = {"rewards": mean / 2}
                if "visits" not in self.statistics:
                    each["visits"] = 2 * mean * (1 - 2 * p)
            found |= {name: max(value, found.get(name, 0.0)) for name, value in each.items()}
        return self.noise_variance(users) | found


def _noise_mean(one: MessageGroup, users: int) -> float:
    """n·K·q/D."""
    return float(Fraction(users * one.noise * one.weight, WORD * one.cells))


def _means(groups: Sequence[MessageGroup], users: int) -> dict[str, FloatArray]:
    """Of the noise on one cell, by statistic and step."""
    means: dict[str, list[float]] = {}
    for one in groups:
        means.setdefault(one.statistic, []).append(_noise_mean(one, users))
    return {name: np.array(values) for name, values in means.items()}


def _check_messages(messages: IntArray, groups: Sequence[MessageGroup], users: int) -> None:
    """Refuse messages that the devices of these users cannot have sent; nothing is counted."""
    for reason in _refused(messages, groups, users):
        raise InvalidInputError(f"{reason} Nothing was released.")


def _refused(messages: IntArray, groups: Sequence[MessageGroup], users: int) -> Iterator[str]:
    if messages.ndim != 2 or messages.shape[1] not in (2, 3) or messages.dtype.kind not in "iu":
        yield "badReport: Expected integers [(group, cell), ...], or [(group, cell, times), ...]."
        return
    kinds, cells, times = messages[:, 0], messages[:, 1], _times(messages)
    if ((kinds < 0) | (kinds >= len(groups))).any():
        yield f"unknownGroup: Expected groups from 0 to {len(groups) - 1}."
        return
    most = np.array([one.cells for one in groups])
    if ((cells < 0) | (cells > most[kinds])).any():
        yield "cellOutOfRange: Expected the number of a cell of its group, or dummy."
    expected = np.array([users * one.messages for one in groups])
    if ((times < 0) | (times > expected.max(initial=0))).any():
        yield "badReport: Expected times from 0 to the number of messages."
        return
    received = np.zeros(len(groups), np.int64)
    np.add.at(received, kinds, times)
    if (received != expected).any():
        i = int(np.flatnonzero(received != expected)[0])
        yield (
            f"wrongNumber: Expected {expected[i]} messages of group {i} from {users} users, got "
            f"{received[i]}; some are missing or foreign, a user was counted twice, or they were "
            f"made for another batch."
        )


def _times(messages: IntArray) -> IntArray:
    """How often each message was sent: once, unless a third column says otherwise."""
    if messages.shape[1] == 3:
        return messages[:, 2]
    return np.ones(len(messages), np.int64)


def _guarantee(trust: "Shuffle") -> Guarantee:
    return Guarantee(
        notion="SDP",
        epsilon=float(trust.epsilon),
        delta=float(trust.delta),
        assumptions=shuffled(trust.honest, "noise", trust.participations),
        participations=trust.participations,
    )
