"""Split reports: guarantee, unbiased sums with the stated variances, simulation against reports."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError, InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms._devices import SplitEncoder
from discreet.privacy.mechanisms.additive import episode_counts
from discreet.privacy.mechanisms.one_step import KEEP
from discreet.privacy.mechanisms.split import report_width
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Local

SHAPE = Shape(states=3, actions=2, horizon=3)
TWO = ("transitions", "rewards")
EPISODE = (np.array([0, 1, 0, 2]), np.array([1, 0, 0]), np.array([1.0, 0.0, 1.0]))
TRUST = Local(1.5, mechanism="split")


def sampler(seed=0):
    return SimulationSampler(np.random.default_rng(seed))


def plan_of(statistics=TWO, shape=SHAPE, **options):
    options = {"last_transitions": False} | options
    return TRUST.calibrate(shape, statistics=statistics, **options)


@given(st.floats(0.01, 30.0))
def test_the_false_bit_delivers_epsilon_and_is_rounded_up(epsilon):
    plan = Local(epsilon).calibrate(SHAPE, statistics=TWO)
    q, guarantee = plan.flip, plan.guarantee
    assert 0 < q < KEEP
    assert math.log((1 - q) / q) <= epsilon * (1 + 1e-12)
    assert q >= math.exp(-epsilon) / (1 + math.exp(-epsilon)) * (1 - 1e-12)
    assert (guarantee.epsilon, guarantee.delta, guarantee.notion) == (epsilon, 0.0, "LDP")


def test_what_cannot_be_calibrated():
    with pytest.raises(UnsupportedError, match="No paper prints"):
        Local(1, mechanism="split", calibration="paper").calibrate(SHAPE)
    with pytest.raises(InvalidInputError, match="losses"):
        TRUST.calibrate(SHAPE, statistics=("losses",))
    with pytest.raises(InvalidInputError, match="something to release"):
        plan_of(("transitions",), Shape(2, 2, 1))
    with pytest.raises(DiscreetError, match="split"):
        TRUST.calibrate_stream(SHAPE, episodes=10)


def test_noise_is_stated_by_statistic():
    mechanism = plan_of()
    q = mechanism.flip
    one = q * (1 - q) / (KEEP - q) ** 2
    assert mechanism.centred and not mechanism.last_transitions
    assert mechanism.noise_variance(10) == pytest.approx(
        {"transitions": 10 * 3 * one, "rewards": 10 * 9 * one / 2, "visits": 10 * 9 * one * 2}
    )
    assert mechanism.visit_variance == pytest.approx(2 * 3 - 1)  # as p = 1/2, whatever q is
    assert mechanism.reward_visit_variance == pytest.approx((2 * 9 - 1) / 4)


@pytest.mark.parametrize(
    ("statistics", "shown", "rarity"),
    [
        (("rewards",), {"rewards", "visits"}, {"rewards": 3}),
        (("visits",), {"visits"}, {"rewards": 3}),
        (("transitions",), {"transitions"}, {"transitions": 2}),
        (("visits", "transitions"), {"visits", "transitions"}, {"transitions": 3, "rewards": 9}),
    ],
)
def test_nobody_reports_what_is_not_asked_for(statistics, shown, rarity):
    mechanism = plan_of(statistics)
    assert set(mechanism.noise_variance(1)) == shown
    assert {name: mechanism.rarity(name) for name in mechanism.parts} == rarity
    counts = mechanism.simulate(crowd, 50, sampler=sampler())
    released = {name for name in shown if getattr(counts, name) is not None}
    assert released == shown and counts.centred == ("rewards" in statistics)


def test_a_single_step_is_known_by_its_rewards():
    mechanism = plan_of(shape=Shape(2, 1, 1))
    assert set(mechanism.parts) == {"rewards"}
    assert mechanism.noise_variance(1)["transitions"] > 0
    users = Trajectories(np.zeros((9, 2), int), np.zeros((9, 1), int), np.ones((9, 1)))
    counts = mechanism.simulate(
        lambda n: users.counts(mechanism.shape, np.random.default_rng(0)), 9, sampler=sampler()
    )
    assert not counts.transitions.any() and counts.visits.any()


def crowd(users):
    """Users of whom no two are alike."""
    rng = np.random.default_rng(users)
    states = rng.choice(3, size=(users, 4), p=[0.6, 0.3, 0.1])
    actions = rng.integers(2, size=(users, 3))
    rewards = (rng.random((users, 3)) < 0.7).astype(float)
    return Trajectories(states, actions, rewards).counts(SHAPE, rng)


def means(plan, many):
    """Mean and variance of the released statistics over many releases."""
    drawn = [many(seed) for seed in range(400)]
    out = {}
    for name in ("transitions", "rewards", "visits"):
        values = np.array([getattr(one, name) for one in drawn])
        out[name] = values.mean(axis=0), values.var(axis=0)
    return out


def by_reports(plan, users):
    encoder = plan.encoder(users)
    states, actions, rewards = EPISODE

    def one(seed):
        noise = sampler(seed)
        reports = [encoder.encode(states, actions, rewards, noise) for _ in range(users)]
        return plan.release_reports(np.concatenate(reports), users, secure=False)

    return one


def by_simulation(plan, users):
    alone = episode_counts(SHAPE, *EPISODE, sampler())

    def draw(size):
        return Counts(size, size * alone.transitions, size * alone.rewards)

    return lambda seed: plan.simulate(draw, users, sampler=sampler(seed))


@pytest.mark.parametrize("way", [by_reports, by_simulation])
def test_releases_are_unbiased_and_vary_as_stated(way):
    """All users do the same: then everything that varies is noise, and what reporting adds."""
    mechanism, users = plan_of(), 12
    alone = episode_counts(SHAPE, *EPISODE, sampler())
    truth = {
        "transitions": users * alone.transitions,
        "rewards": users * (alone.rewards - alone.visits / 2),
        "visits": users * alone.visits,
    }
    visited = users * alone.visits
    extra = {
        "transitions": users * alone.transitions * mechanism.visit_variance,
        # Her reward is known, so all of it is what reporting adds.
        "rewards": visited * mechanism.reward_visit_variance,
        "visits": visited * (4 * mechanism.reward_visit_variance),
    }
    for name, (mean, variance) in means(mechanism, way(mechanism, users)).items():
        stated = mechanism.noise_variance(users)[name] + extra[name]
        last = slice(None, -1) if name == "transitions" else slice(None)
        assert (np.abs(mean - truth[name])[last] < 5 * np.sqrt(stated / 400)[last]).all()
        assert np.allclose(variance[last], stated[last], rtol=0.45)
        assert np.mean(variance[last] / stated[last]) == pytest.approx(1.0, abs=0.05)
        if name == "transitions":
            assert not mean[-1].any() and not variance[-1].any()


def test_steps_off_the_policy_count_as_nothing():
    mechanism, support = plan_of(), np.zeros(SHAPE.visits, np.bool_)
    support[:, :, 0] = True  # the user leaves at once
    encoder, noise = mechanism.encoder(1, support=support), sampler(1)
    reports = np.concatenate([encoder.encode(*EPISODE, noise) for _ in range(4000)])
    counts = mechanism.release_reports(reports, 4000, secure=False, support=support)
    for name, values in (("transitions", counts.transitions), ("visits", counts.visits)):
        assert (np.abs(values) < 5 * math.sqrt(mechanism.noise_variance(4000)[name])).all()
        assert not values[:, :, 1].any()


def test_an_encoder_travels_as_json():
    encoder = plan_of().encoder(7)
    assert isinstance(encoder, SplitEncoder)
    copy = SplitEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    for seed in range(20):
        report = copy.encode(*EPISODE, sampler(seed))
        assert np.array_equal(report, encoder.encode(*EPISODE, sampler(seed)))
        assert report.shape == (1, 1 + report_width(SHAPE)) and 0 <= report[0, 0] < 5
    assert plan_of().traffic(1).messages == 1


@pytest.mark.parametrize(("column", "value"), [(0, 5), (0, -1), (4, 2), (1, -1)])
def test_reports_that_no_device_sends_are_refused(column, value):
    mechanism = plan_of()
    report = mechanism.encoder(1).encode(*EPISODE, sampler())
    report[0, column] = value
    with pytest.raises(InvalidInputError, match="a slot from 0 to 4 followed by bits"):
        mechanism.release_reports(report, 1)


def test_reports_are_all_that_it_takes():
    mechanism = plan_of()
    assert mechanism.takes_reports and not mechanism.takes_counts


def test_a_billion_users_cost_what_a_thousand_do():
    alone = episode_counts(SHAPE, *EPISODE, sampler())
    asked = []

    def draw(size):
        asked.append(size)
        return Counts(size, size * alone.transitions, size * alone.rewards)

    counts = plan_of().simulate(draw, 10**9, sampler=sampler())
    assert len(asked) == 5 and sum(asked) == 10**9
    assert np.allclose(counts.visits[0, 0, 1], 10**9, rtol=1e-3)
    assert np.allclose(counts.rewards[0, 0, 1], 5 * 10**8, rtol=1e-3)
