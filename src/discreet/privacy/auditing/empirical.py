"""Attacks on the real code path: lower bounds on epsilon that hold with overwhelming confidence.

An attacker watches many releases of two neighbouring data sets. Half of what was seen is used to
choose a test (a linear combination of the outputs, Fisher's discriminant, and a threshold), the
other half to count how often the test is right; Clopper-Pearson bounds turn counts into
probabilities. If a test fires with probability at least p on one data set and at most q on the
other, then epsilon >= log((p - delta) / q), whatever the mechanism says about itself.

Such a bound can convict, never acquit: rare events are not seen in a few thousand runs.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from discreet import _validate
from discreet._types import BoolArray, FloatArray
from discreet.errors import InvalidInputError
from discreet.mdp.counts import Counts
from discreet.privacy.auditing.neighbours import Episode, Plan, batch_of, opposites, vector
from discreet.privacy.plans import BatchPlan, ReportPlan, StreamPlan, with_counts, with_reports
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import PrivateCounts, flatten
from discreet.privacy.streams.release import StreamRelease

CONFIDENCE = 1 - 1e-6


def epsilon_low(
    first: FloatArray, second: FloatArray, delta: float, *, confidence: float = CONFIDENCE
) -> float:
    """A lower bound on epsilon from samples ``[runs, outputs]`` under two neighbours.

    >>> rng = np.random.default_rng(0)
    >>> epsilon_low(rng.normal(0, 1, (4000, 1)), rng.normal(4, 1, (4000, 1)), 1e-6) > 3
    True
    """
    _validate.delta(delta=delta)
    if first.ndim != 2 or first.shape != second.shape or len(first) < 8:
        raise InvalidInputError(
            f"Expected two equal [runs >= 8, outputs] arrays, got {first.shape}."
        )
    half = len(first) // 2
    weights = _discriminant(first[:half], second[:half])
    scores, rivals = first @ weights, second @ weights
    # Two tests, "high score: first" and "low score: second", share the allowed failure.
    level = 1 - (1 - confidence) / 2
    tests = ((scores, rivals), (-rivals, -scores))
    return max(0.0, *(_attack(hit, miss, half, delta, level) for hit, miss in tests))


def _attack(hit: FloatArray, miss: FloatArray, half: int, delta: float, level: float) -> float:
    """Choose a threshold on the first half, count on the second."""
    cut = _threshold(hit[:half], miss[:half], delta, level)
    return _bound(hit[half:] >= cut, miss[half:] >= cut, delta, level)


def _bound(hits: BoolArray, misses: BoolArray, delta: float, level: float) -> float:
    """log((p - delta)/q) from Clopper-Pearson bounds, each at half of 1 - level."""
    from scipy.stats import beta

    tail = (1 - level) / 2
    fired, total = int(hits.sum()), hits.size
    low = float(beta.ppf(tail, fired, total - fired + 1)) if fired else 0.0
    false = int(misses.sum())
    high = float(beta.isf(tail, false + 1, misses.size - false)) if false < misses.size else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


def _threshold(hit: FloatArray, miss: FloatArray, delta: float, level: float) -> float:
    """The cut with the best bound on the first half."""
    cuts = np.unique(np.quantile(hit, np.r_[0.02:0.98:33j, 0.99, 0.995, 0.998]))
    return float(max(cuts, key=lambda cut: _bound(hit >= cut, miss >= cut, delta, level)))


def _discriminant(first: FloatArray, second: FloatArray) -> FloatArray:
    """Fisher's direction; a combination of outputs without noise gets all the weight."""
    gap = first.mean(axis=0) - second.mean(axis=0)
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    covariance = centred.T @ centred / len(centred)
    ridge = 1e-10 * float(np.trace(covariance)) / gap.size + 1e-300
    weights: FloatArray = np.linalg.solve(covariance + ridge * np.eye(gap.size), gap)
    size = float(np.abs(weights).max())
    return weights / size if size else weights


def samples(
    plan: Plan, sampler: Sampler, runs: int, *, users: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Real releases of two neighbours, ``[runs, outputs]`` each.

    The outputs are, per release and statistic, what went up minus what went down: noise that is
    shared between counters cancels in it. Streams differ in their first user and are watched to
    the end; users of a local mechanism send a report made on their own device, users of a shuffle
    mechanism send messages through encoder, shuffler and analyser.
    """
    one, other = opposites(plan.shape)
    if isinstance(plan, StreamPlan) and plan.response == "unit":
        return _long_streams(plan, sampler, runs)
    if isinstance(plan, StreamPlan):
        watch = _watch_stream(plan, sampler)
    elif plan.guarantee.notion == "LDP":
        watch = _watch_reports(plan, sampler)
    elif plan.guarantee.notion == "SDP":
        watch = _watch_messages(with_reports(plan), sampler, users)
    else:
        watch = _watch_batch(plan, sampler, users)
    sums = _signed_sums(plan, one.counts(plan.shape), other.counts(plan.shape))
    first, second = (
        np.array([np.concatenate([sums(vector(r)) for r in watch(user)]) for _ in range(runs)])
        for user in (one, other)
    )
    return first, second


def _long_streams(plan: StreamPlan, sampler: Sampler, runs: int) -> tuple[FloatArray, FloatArray]:
    """First, last and average release of streams of additive noise, which comes in blocks.

    The average catches noise that is drawn again for every release: it vanishes in the mean.
    """
    one, other = (user.counts(plan.shape) for user in opposites(plan.shape))
    move = flatten(one, plan.statistics, stationary=plan.stationary)
    move = move - flatten(other, plan.statistics, stationary=plan.stationary)
    signs = np.sign(move).astype(np.float64)

    def watch(gain: float) -> FloatArray:
        seen = plan.open(sampler).noise_block(plan.episodes) @ signs + gain
        return np.array([seen.mean(), seen[0], seen[-1]])

    gain = float(np.abs(move).sum())
    return (
        np.array([watch(gain) for _ in range(runs)]),
        np.array([watch(0.0) for _ in range(runs)]),
    )


_Watch = Callable[[Episode], list[PrivateCounts]]


def _watch_batch(plan: BatchPlan, sampler: Sampler, users: int) -> _Watch:
    taker = with_counts(plan)
    return lambda user: [taker.release(batch_of(user, users, plan.shape), sampler=sampler)]


def _watch_reports(plan: BatchPlan, sampler: Sampler) -> _Watch:
    if not isinstance(plan, ReportPlan):
        return _watch_batch(plan, sampler, 1)
    encoder = plan.encoder(1)

    def watch(user: Episode) -> list[PrivateCounts]:
        report = encoder.encode(user.states, user.actions, user.rewards, sampler)
        return [plan.release_reports(report, 1, secure=sampler.secure)]

    return watch


def _watch_messages(plan: ReportPlan, sampler: Sampler, users: int) -> _Watch:
    """Encoder, shuffler and analyser, as they would be deployed."""
    encoder, usual = plan.encoder(users), opposites(plan.shape)[0]

    def watch(user: Episode) -> list[PrivateCounts]:
        crowd = [user] + [usual] * (users - 1)
        sent = [encoder.encode(u.states, u.actions, u.rewards, sampler) for u in crowd]
        messages = np.concatenate(sent)
        mixed = messages[sampler.permutation(len(messages))]
        return [plan.release_reports(mixed, users, secure=sampler.secure)]

    return watch


def _watch_stream(plan: StreamPlan, sampler: Sampler) -> _Watch:
    usual = opposites(plan.shape)[0].counts(plan.shape)

    def watch(user: Episode) -> list[PrivateCounts]:
        stream = plan.open(sampler)
        return [stream.add(user.counts(plan.shape)), *_rest(stream)]

    def _rest(stream: StreamRelease) -> Iterator[PrivateCounts]:
        return (stream.add(usual) for _ in range(plan.episodes - 1))

    return watch


def _signed_sums(plan: Plan, one: Counts, other: Counts) -> Callable[[FloatArray], FloatArray]:
    """Per statistic: what went up minus what went down."""
    stationary = isinstance(plan, StreamPlan) and plan.stationary
    rows, sizes = [], []
    for name in ("transitions", "visits", "rewards"):
        if name in plan.statistics:
            move = np.sign(getattr(one, name) - getattr(other, name)).astype(np.float64)
            rows.append((move.sum(axis=0) if stationary else move).ravel())
            sizes.append(rows[-1].size)
    signs = np.concatenate(rows)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]

    def sums(values: FloatArray) -> FloatArray:
        totals: FloatArray = np.add.reduceat(signs * values, starts)
        return totals

    return sums
