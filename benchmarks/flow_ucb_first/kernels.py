"""Compiled planning of the first flow-ucb (equations in `learner`).

Evidence has a leading axis of length H, or 1 where counts are pooled over steps. Transitions are
kept for the rows that some batch has visited: ``number[h, s, a]`` says where, -1 for nowhere. Rows
that were never played have ``visits`` zero. Sums of rows and the flow of a policy through a model
are no rules of a learner and come from today's flow-ucb.
"""

import numpy as np

from benchmarks.flow_ucb_first.evidence import Evidence
from discreet._jit import kernel
from discreet._types import FloatArray, IntArray
from discreet.learners.flow_ucb.belief_kernels import add_rows
from discreet.learners.flow_ucb.plan_kernels import state_occupancy
from discreet.privacy.postprocess.valid_counts_kernels import valid_row

__all__ = ["add_rows", "model", "optimistic", "state_occupancy", "uncertainty_after"]

TIE = 1e-9


@kernel
def preferred(value: float, best: float, tie: float, luck: float) -> bool:
    """Whether an action is better than the best so far, or as good and luckier."""
    return value > best + TIE or (value > best - TIE and tie > luck)


@kernel
def credit(expected: float, noise: float, ease: float) -> float:
    """Weight of a batch in one cell: near 1 where the counts dwarf the noise, near 0 below it."""
    if noise == 0.0:
        return 1.0
    return expected / (expected + noise / ease)


@kernel
def model(
    number: IntArray, transitions: FloatArray, visits: FloatArray, probabilities: FloatArray
) -> None:
    """Transition probabilities of the rows kept: the valid distribution nearest to their counts."""
    layers, states, actions = visits.shape
    row = np.empty(states)
    for h in range(layers):
        for s in range(states):
            for a in range(actions):
                total, i = visits[h, s, a], number[h, s, a]
                if i >= 0 and total > 0.0:
                    valid_row(transitions[i], total, total, row)
                    probabilities[i] = row / total
                elif i >= 0:
                    probabilities[i] = 1.0 / states


@kernel
def spread(
    probabilities: FloatArray, following: FloatArray, reward: float
) -> tuple[float, float, float]:
    """Mean of the next value, its variance plus the reward's, and its sum of squared deviations."""
    mean = 0.0
    for j in range(following.size):
        mean += probabilities[j] * following[j]
    variance = reward * (1.0 - reward)
    deviation = 0.0
    for j in range(following.size):
        square = (following[j] - mean) ** 2
        variance += probabilities[j] * square
        deviation += square
    return mean, variance, deviation


@kernel
def deviation_of(
    visits: float,
    sampling: float,
    noise: float,
    reward_noise: float,
    visit_noise: float,
    variance: float,
    deviation: float,
    reward: float,
    centre: float,
    ceiling: float,
) -> float:
    """Standard deviation of one estimated Q value, from sampling and from privacy noise.

    Rewards are released as sums of r - ``centre``: noise on the visits moves them no further.
    Divided by the visits that are certain, one standard deviation below those counted: where noise
    alone explains the count, nothing is known and the answer is infinite.
    """
    certain = visits - np.sqrt(visit_noise)
    if certain <= 0.0:
        return np.inf
    square = sampling * variance
    square += noise * deviation + reward_noise + visit_noise * (reward - centre) ** 2
    square += (2.0 * ceiling * sampling / visits) ** 2
    return float(np.sqrt(square) / certain)


@kernel
def optimistic(
    evidence: Evidence,
    probabilities: FloatArray,
    width: float,
    centre: float,
    tie: FloatArray,
    actions: IntArray,
    values: FloatArray,
    bonus: FloatArray,
    moments: FloatArray,
) -> None:
    """Backward induction with bonuses; ``width`` 0 plans greedily and shuns unknown actions.

    No action is worth more than a reward of one and then the best state of the next step.

    ``moments[h, s]``: variance, squared deviations (see `spread`) and reward of the action taken.
    """
    number, _, reward_sums, visits, sampling, noise, reward_noise, visit_noise = evidence
    horizon = actions.shape[0]
    layers, states, choices = visits.shape
    values[horizon] = 0.0
    for h in range(horizon - 1, -1, -1):
        layer = h if layers > 1 else 0
        ceiling = 1.0 + np.max(values[h + 1])
        for s in range(states):
            best, luck = -1.0, -1.0
            for a in range(choices):
                n = visits[layer, s, a]
                reward, mean, variance, deviation = 0.0, 0.0, 0.25, 0.0
                if n > 0.0:
                    reward = min(max(reward_sums[layer, s, a] / n, 0.0), 1.0)
                    variance = reward * (1.0 - reward)
                    if number[layer, s, a] >= 0:  # the last step may lead nowhere
                        mean, variance, deviation = spread(
                            probabilities[number[layer, s, a]], values[h + 1], reward
                        )
                sd = deviation_of(
                    n,
                    sampling[layer, s, a],
                    noise[layer, s, a],
                    reward_noise[layer, s, a],
                    visit_noise[layer, s, a],
                    variance,
                    deviation,
                    reward,
                    centre,
                    float(horizon - h),
                )
                if np.isinf(sd):
                    extra = ceiling
                    q = ceiling if width > 0.0 else 0.0
                else:
                    extra = width * sd
                    q = min(reward + mean + extra, ceiling)
                if preferred(q, best, tie[h, s, a], luck):
                    best, luck = max(q, best), tie[h, s, a]
                    actions[h, s] = a
                    bonus[h, s] = min(extra, ceiling)
                    moments[h, s, 0], moments[h, s, 1] = variance, deviation
                    moments[h, s, 2] = reward
            values[h, s] = best


@kernel
def uncertainty_after(
    evidence: Evidence,
    users: float,
    new_noise: float,
    new_reward_noise: float,
    per_visit: float,
    factors: FloatArray,
    ease: float,
    occupancy: FloatArray,
    actions: IntArray,
    moments: FloatArray,
    width: float,
    centre: float,
) -> float:
    """Expected bonus along the policy once ``users`` more have played it.

    ``per_visit`` and ``factors``: see `FlowUCB._add`.
    """
    _, _, _, visits, sampling, noise, reward_noise, visit_noise = evidence
    layers, states, choices = visits.shape
    horizon = actions.shape[0]
    fresh = np.zeros((layers, states, choices, 5))
    for h in range(horizon):
        layer = h if layers > 1 else 0
        for s in range(states):
            expected = users * occupancy[h, s]
            w = credit(expected, new_noise, ease)
            cell = fresh[layer, s, actions[h, s]]
            cell[0] += w * expected
            cell[1] += w * w * expected * (1.0 + per_visit)
            cell[2] += w * w * new_noise
            cell[3] += w * w * new_reward_noise
            cell[4] += w * w * (new_noise * factors[h] + per_visit * expected / 2.0)
    total = 0.0
    for h in range(horizon):
        layer = h if layers > 1 else 0
        ceiling = float(horizon - h)
        for s in range(states):
            if occupancy[h, s] <= 0.0:
                continue
            a = actions[h, s]
            cell = fresh[layer, s, a]
            n = visits[layer, s, a] + cell[0]
            variance, deviation, reward = moments[h, s]
            extra = width * deviation_of(
                max(n, 1e-9),
                sampling[layer, s, a] + cell[1],
                noise[layer, s, a] + cell[2],
                reward_noise[layer, s, a] + cell[3],
                visit_noise[layer, s, a] + cell[4],
                variance,
                deviation,
                reward,
                centre,
                ceiling,
            )
            total += occupancy[h, s] * min(extra, ceiling)
    return total
