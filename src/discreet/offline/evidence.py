"""What the release says of each row, with the variances it carries.

A *row* is a slot (h, s, a), or a state (h, s) with all its slots added up: what behaviour does
there, whatever its probabilities are. Of each row the evidence has the sums N (visits), T
(transitions) and R (rewards), and the variances of their noise after flow consistency.

**Noise on the visits.** Without constraints, N of a row has the noise of its C released counters,
C·sigma² (C = S, or 1 at a collapsed last step). At the first step the layer sums to n. Later the
slots of a state sum to what flows in, which is measured by one counter of each of the K rows of the
layer before. So with k slots, O = k·C·sigma² (out), I = K·sigma² (in) and share = I/(I + O), a
state's visits keep the variance share·O and a slot's C·sigma²·(1 - (1 - share)/k). Further
constraints make them smaller still; with equal layers this is share = 1/2.
"""

from typing import NamedTuple

import numpy as np

from discreet._types import BoolArray, FloatArray
from discreet.mdp.counts import dense_of
from discreet.privacy.postprocess.flow import consistent_flow
from discreet.privacy.statistics import PrivateCounts

CENTRE = 0.5
"""Centred rewards are sums of r - 1/2."""


class Rows(NamedTuple):
    """Sums over rows and their variances, all ``[layers, ...]`` with one layer per step or one.

    Attributes:
        transitions: T, ``[..., S]``.
        visits: N.
        rewards: R, sums of rewards.
        sampling: M, visits weighted as variances are (N itself unless steps are pooled).
        transition_noise: F, variance of the noise on one entry of T.
        reward_noise: G, variance of the noise on R if N were exact.
        visit_noise: D, variance of the noise on N.
        anchor: the mean reward at which noise on N does not move the mean.
        drawn: 1 where the mean reward is estimated from people's rewards, 0 where it is known.
    """

    transitions: FloatArray
    visits: FloatArray
    rewards: FloatArray
    sampling: FloatArray
    transition_noise: FloatArray
    reward_noise: FloatArray
    visit_noise: FloatArray
    anchor: FloatArray
    drawn: FloatArray

    def layer(self, step: int) -> "Rows":
        """The rows of one step."""
        return Rows(*(array[step] for array in self))

    @property
    def certain(self) -> FloatArray:
        """Visits that noise does not explain: two standard deviations below those counted."""
        certain: FloatArray = self.visits - 2 * np.sqrt(self.visit_noise)
        return certain

    @property
    def known(self) -> BoolArray:
        """Rows in which somebody was, beyond the noise."""
        return np.asarray(self.certain > 0.5)

    @property
    def probabilities(self) -> FloatArray:
        """Estimated P, ``[..., S]``; zeros where nobody was."""
        return self.transitions / _some(self.visits)[..., None]

    @property
    def means(self) -> FloatArray:
        """Estimated mean rewards, as they are: noise can push them out of [0, 1]."""
        return self.rewards / _some(self.visits)


class Evidence(NamedTuple):
    """All rows of a release.

    Attributes:
        users: n.
        slots: rows ``[H, S, K]``.
        behaviour: rows ``[H, S]``.
        played: ``bool[H, S, K]``.
        pooled: rows ``[1, S, K]`` summed over steps, or None; behaviour is never pooled.
        stationary: ``bool[S, K]``, the slots whose rows are taken from ``pooled``.
        told: ``[H, S, K]``, what behaviour does, if it is public.
    """

    users: int
    slots: Rows
    behaviour: Rows
    played: BoolArray
    pooled: Rows | None = None
    stationary: BoolArray | None = None
    told: FloatArray | None = None

    def at(self, step: int) -> Rows:
        """The rows ``[S, K]`` to use at a step."""
        own = self.slots.layer(step)
        if self.pooled is None or self.stationary is None:
            return own
        chosen = self.stationary
        masks = (chosen[..., None], *[chosen] * (len(own) - 1))
        pairs = zip(masks, self.pooled.layer(0), own, strict=True)
        return Rows(*(np.where(mask, pooled, step_) for mask, pooled, step_ in pairs))

    @property
    def shares(self) -> FloatArray:
        """``[H, S, K]``, the share of each slot in what behaviour does: as told, or estimated."""
        if self.told is not None:
            return self.told
        return self.slots.visits / _some(self.behaviour.visits)[..., None]

    @property
    def initial(self) -> FloatArray:
        """``[S]``, the estimated distribution of first states."""
        first: FloatArray = self.behaviour.visits[0] / self.users
        return first


def gather(counts: PrivateCounts, known_rewards: FloatArray, *, keep_last: bool) -> Evidence:
    """The evidence of one release.

    Args:
        counts: the release, in slots.
        known_rewards: ``[H, S, K]``, the mean reward where it is public, NaN elsewhere.
        keep_last: whether transitions of the last step mean next states (see `slots`).
    """
    noise = counts.noise_variance["transitions"]
    columns = np.full(len(counts.played), float(counts.played.shape[1]))
    if not keep_last:
        columns[-1] = 1.0
    transitions = _consistent(counts, noise, columns)
    slots = _slots(counts, transitions, columns, known_rewards)
    return Evidence(counts.users, slots, _behaviour(slots, counts.played, columns), counts.played)


def _consistent(counts: PrivateCounts, noise: float, columns: FloatArray) -> FloatArray:
    """Flow-consistent transitions ``[H, S, K, S]``.

    A collapsed last row has one true counter y of variance sigma². The projection sees S counters
    y/S of variance sigma²/S, whose sum has the same solution.
    """
    rows = np.array(counts.row_transitions)
    steps, states = np.nonzero(counts.played)[0], rows.shape[1]
    single = (columns < states)[steps]
    rows[single] = rows[single, :1] / states
    if noise:
        variance = np.broadcast_to((noise * columns / states)[:, None, None], counts.played.shape)
        start = counts.played[0].any(axis=1)
        rows = consistent_flow(
            rows, users=counts.users, played=counts.played, start=start, variance=variance
        ).transitions
    dense: FloatArray = dense_of(rows, counts.played)
    return dense


def _slots(
    counts: PrivateCounts, transitions: FloatArray, columns: FloatArray, known: FloatArray
) -> Rows:
    played, variance = counts.played, counts.noise_variance
    visits, noise = transitions.sum(axis=-1), variance["transitions"]
    public = ~np.isnan(known)
    rewards = np.where(public, np.nan_to_num(known) * visits, 0.0)
    if counts.rewards is not None:
        sums = counts.rewards + (CENTRE * visits if counts.centred else 0.0)
        rewards = np.where(public, rewards, sums)
    centre = CENTRE if counts.centred else 0.0
    return Rows(
        transitions,
        visits,
        rewards,
        sampling=visits,
        transition_noise=np.where(played, noise, 0.0),
        reward_noise=np.where(played & ~public, variance.get("rewards", 0.0), 0.0),
        visit_noise=noise * slot_factors(played, columns),
        anchor=np.where(public, np.nan_to_num(known), centre),
        drawn=np.where(public, 0.0, 1.0),
    )


def _behaviour(slots: Rows, played: BoolArray, columns: FloatArray) -> Rows:
    """All slots of a state added up; no probabilities of behaviour are needed.

    Known rewards leave the noise of who took which action: D·(r - mean)² for each slot.
    """
    visits, rewards = slots.visits.sum(axis=2), slots.rewards.sum(axis=2)
    means = rewards / _some(visits)
    public = slots.drawn == 0
    mixing = slots.visit_noise * public * (slots.anchor - means[..., None]) ** 2
    noise = float(slots.transition_noise.max())
    some_drawn = (played & ~public).any(axis=2)
    centre = (slots.anchor * ~public).max()
    return Rows(
        slots.transitions.sum(axis=2),
        visits,
        rewards,
        sampling=visits,
        transition_noise=slots.transition_noise.sum(axis=2),
        reward_noise=(slots.reward_noise + mixing).sum(axis=2),
        visit_noise=noise * state_factors(played, columns),
        anchor=np.where(some_drawn, centre, means),
        drawn=np.ones(visits.shape),
    )


def state_factors(played: BoolArray, columns: FloatArray) -> FloatArray:
    """``[H, S]``, variance of a state's visits per variance of a counter (module docstring).

    >>> state_factors(np.ones((3, 4, 2), bool), np.array([4.0, 4, 1])).round(2)[:, 0].tolist()
    [6.0, 4.0, 1.6]
    """
    out, share = _out_and_share(played, columns)
    return out * share


def slot_factors(played: BoolArray, columns: FloatArray) -> FloatArray:
    """``[H, S, K]``, variance of a slot's visits per variance of a counter.

    >>> slot_factors(np.ones((3, 4, 2), bool), np.array([4.0, 4, 1])).round(2)[:, 0, 0].tolist()
    [3.5, 3.0, 0.9]
    """
    share = _out_and_share(played, columns)[1]
    slots = np.maximum(played.sum(axis=2), 1)
    kept = (columns[:, None] * (1 - (1 - share) / slots))[..., None]
    return np.asarray(kept * played)


def _out_and_share(played: BoolArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance of a state's visits by what flows out, and the share that constraints leave."""
    out = played.sum(axis=2) * columns[:, None]
    inflow = np.empty_like(out)
    inflow[1:] = played.sum(axis=(1, 2))[:-1, None]
    inflow[0] = out[0].sum() - out[0]  # the others of the first layer, whose sum is n
    return out, inflow / np.maximum(inflow + out, 1e-300)


def _some(visits: FloatArray) -> FloatArray:
    """Visits to divide by."""
    return np.maximum(visits, 1e-9)
