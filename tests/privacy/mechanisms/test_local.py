"""Local mechanisms of streams: exact privacy of a report, moments, blocks against the rule."""

import itertools
import math

import numpy as np
import pytest

from discreet.auditing import check_mechanism
from discreet.auditing.examine import examine
from discreet.auditing.paths import ADD, BLOCK, by_the_rule, stream_path
from discreet.errors import CalibrationError, InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.accounting.closed_forms import flip_probability
from discreet.privacy.accounting.distributions import table_pmf
from discreet.privacy.accounting.losses import delta_of_moves
from discreet.privacy.mechanisms.local import bounded_radius
from discreet.privacy.mechanisms.noise import Bounded, Laplace
from discreet.privacy.mechanisms.one_step import OneStepTail
from discreet.privacy.mechanisms.randomized_response import FlipTail
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.trust import Local

SHAPE = Shape(states=4, actions=2, horizon=6)
TINY = Shape(states=2, actions=1, horizon=2)
NAMES = ("laplace", "gaussian", "randomized-response", "bounded", "one-step")


def sampler(seed=0):
    return SimulationSampler(np.random.default_rng(seed))


def trust(name, epsilon=1.0):
    return Local(epsilon, 1e-2 if name in ("gaussian", "bounded") else 0, mechanism=name)


def stream(name, shape=TINY, episodes=50, epsilon=1.0, **options):
    return trust(name, epsilon).calibrate_stream(shape, episodes=episodes, **options)


def episodes(users, seed=0, shape=TINY):
    """Users of a two-state problem whose reward bit does not depend on the next state."""
    rng = np.random.default_rng(seed)
    states = rng.integers(shape.states, size=(users, shape.horizon + 1))
    states[:, 0] = 0
    actions = np.zeros((users, shape.horizon), np.int64)
    rewards = (rng.random((users, shape.horizon)) < 0.7).astype(float)
    return Trajectories(states, actions, rewards)


def test_randomised_response_is_exactly_epsilon():
    mechanism = stream("randomized-response", SHAPE)
    q = mechanism.flip
    assert 2 * 3 * 6 * math.log((1 - q) / q) == pytest.approx(1.0, rel=1e-9)
    assert 2 * 3 * 6 * math.log((1 - q) / q) <= 1.0


@pytest.mark.parametrize("mechanism", ["randomized-response", "one-step"])
def test_an_epsilon_that_no_flip_can_represent_is_refused(mechanism):
    """At 1e-13 a safety factor of 1 + 1e-14 once gave a q above one half."""
    with pytest.raises(CalibrationError, match="Expected epsilon >= "):
        stream(mechanism, SHAPE, epsilon=1e-13)
    assert 0 < stream(mechanism, SHAPE, epsilon=1e-9).flip < 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("truths", [(0, 1), (0, None)])
def test_one_step_reports_are_exactly_epsilon(epsilon, truths):
    """Enumerate all reports of four categories, also for an episode outside the played ones."""
    q = flip_probability(epsilon)

    def probabilities(truth):
        rates = [0.5 if c == truth else q for c in range(4)]
        return np.array(
            [
                math.prod(r if bit else 1 - r for r, bit in zip(rates, bits, strict=True))
                for bits in itertools.product((0, 1), repeat=4)
            ]
        )

    losses = np.abs(np.log(probabilities(truths[0]) / probabilities(truths[1])))
    assert losses.max() <= epsilon * (1 + 1e-12)
    if truths == (0, 1):
        assert losses.max() == pytest.approx(epsilon)


@pytest.mark.parametrize(("units", "epsilon", "delta"), [(12, 1.0, 0.1), (12, 0.5, 1e-3)])
def test_bounded_noise_keeps_its_guarantee_and_little_more(units, epsilon, delta):
    radius = bounded_radius(units, epsilon, delta)

    def lost(r):
        distribution = Bounded(r)
        return delta_of_moves(
            table_pmf(distribution.weights, -distribution.largest), units // 2, units // 2, epsilon
        )

    assert lost(radius) <= delta
    assert lost(math.floor(0.97 * radius) - 1) > delta


def test_bounded_distribution_has_the_printed_density():
    distribution = Bounded(40)
    x = np.arange(-distribution.largest, distribution.largest + 1)
    assert distribution.largest < 40
    expected = np.exp(-np.exp(1 / (1 - (x / 40) ** 2)))
    assert np.allclose(
        distribution.weights / distribution.weights.sum(), expected / expected.sum(), atol=1e-15
    )
    assert np.array_equal(distribution.weights, distribution.weights[::-1])
    draws = distribution.draw(sampler(), 100_000)
    assert np.abs(draws).max() <= distribution.largest
    assert draws.var() == pytest.approx(distribution.variance, rel=0.03)
    sums = distribution.draw_sum(sampler(1), 100, 20_000)
    assert sums.var() == pytest.approx(100 * distribution.variance, rel=0.06)
    assert abs(sums.mean()) < 6 * math.sqrt(100 * distribution.variance / 20_000)


def released(private):
    return np.concatenate(
        [private.transitions.ravel(), private.visits.ravel(), private.rewards.ravel()]
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stationary", [False, True])
def test_block_boundaries_do_not_change_values(name, stationary):
    mechanism = stream(name, stationary=stationary)
    whole = mechanism.open(sampler()).block(50)
    release = mechanism.open(sampler())
    parts = [release.block(n) for n in (1, 7, 42)]
    for field in ("noise", "gains", "steps", "centres"):
        joined = np.concatenate([getattr(part, field) for part in parts])
        assert np.array_equal(joined, getattr(whole, field))
    assert whole.noise.shape == (50, mechanism.cells)
    with pytest.raises(InvalidInputError, match="longer stream"):
        release.block(1)


def by_kernel_rule(plan, block, group):
    """The documented meaning of a block, step by step, as a compiled learner would apply it."""
    shape, rows = plan.shape, []
    steps = 1 if plan.stationary else shape.horizon
    total = {
        "transitions": np.zeros((steps, *shape.transitions[1:])),
        "visits": np.zeros((steps, *shape.visits[1:])),
        "rewards": np.zeros((steps, *shape.visits[1:])),
    }
    size = {"transitions": int(np.prod(shape.transitions)), "visits": int(np.prod(shape.visits))}
    first = {"transitions": 0, "visits": size["transitions"]}
    first["rewards"] = first["visits"] + size["visits"]
    for i in range(len(group)):
        for h in range(shape.horizon):
            s, a, nxt = group.states[i, h], group.actions[i, h], group.states[i, h + 1]
            r = int(group.rewards[i, h])
            pair = (h * shape.states + s) * shape.actions + a
            if plan.response == "unit":
                gains = (1.0, 1.0, 1.0)
            elif plan.response == "cell":
                row = block.gains[i]
                move = first["transitions"] + pair * shape.states + nxt
                gains = (row[move], row[first["visits"] + pair], row[first["rewards"] + pair])
            else:
                category = ((s * shape.actions + a) * shape.states + nxt) * 2 + r
                gains = (block.gains[i, category] * (h == block.steps[i]),) * 3
            at = 0 if plan.stationary else h
            total["transitions"][at, s, a, nxt] += gains[0]
            total["visits"][at, s, a] += gains[1]
            total["rewards"][at, s, a] += r * gains[2]
        rows.append(np.concatenate([v.ravel() for v in total.values()]) + block.noise[i])
        assert np.array_equal(rows[-1], np.rint(rows[-1]))
    return public(block, np.array(rows))


def public(block, integers):
    """Estimates from the integers after each release of a block."""
    return block.scale * (integers - (block.centres if block.centres.size else 0.0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stationary", [False, True])
def test_add_and_blocks_agree(name, stationary):
    mechanism, group = stream(name, episodes=20, stationary=stationary), episodes(20)
    expected = by_kernel_rule(mechanism, mechanism.open(sampler(4)).block(20), group)
    release = mechanism.open(sampler(4))
    for i in range(20):
        private = release.add(group[i : i + 1].counts(TINY, np.random.default_rng(0)))
        assert np.array_equal(released(private), expected[i])
        assert private.guarantee.notion == "LDP"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stationary", [False, True])
def test_stream_variance_and_error_bounds(name, stationary):
    shape = Shape(states=3, actions=20, horizon=4)
    mechanism = stream(name, shape, episodes=40, stationary=stationary, epsilon=2.0)
    drawn = [mechanism.open(sampler(s)).block(40) for s in range(12)]
    blocks = [public(block, block.noise) for block in drawn]
    values = np.concatenate(blocks, axis=1)
    transitions = mechanism.noise_variance(40)["transitions"]
    size = 3 * 20 * 3 * (1 if stationary else 4)
    last = np.concatenate([b[-1, :size] for b in blocks])
    assert last.var() == pytest.approx(transitions, rel=0.25 if stationary else 0.15)
    bound = mechanism.error_bound(40, 0.1)
    assert (np.abs(values[-1]) > bound).mean() <= 0.1
    assert bound < 4 * math.sqrt(max(mechanism.noise_variance(40).values()))
    assert np.allclose(mechanism.error_bounds(0.1)[[0, 39]], [mechanism.error_bound(1, 0.1), bound])


def test_error_bounds_cover_visited_counters():
    """A counter everybody visits, where one-step reports vary most."""
    users, q, horizon = 60, flip_probability(1.0), 3
    rng = np.random.default_rng(0)
    shown = rng.random((20_000, users)) < 1 / horizon
    bits = np.where(rng.random((20_000, users)) < 0.5, 1 - q, -q) + (
        rng.binomial(3, q, (20_000, users)) - 3 * q
    )
    error = (horizon / (0.5 - q) * bits * shown).sum(axis=1) - users
    bound = OneStepTail(q, 4, horizon, pooled=False).bound({1.0: users}, 0.05)
    assert (np.abs(error) > bound).mean() <= 0.05
    assert FlipTail(0.3).bound({1.0: 10.0}, 0.05) > math.sqrt(10 * FlipTail(0.3).variance)


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="gains"):
        stream("one-step").open(sampler()).noise_block(3)
    with pytest.raises(CalibrationError, match="delta > 0"):
        Local(1, mechanism="bounded").calibrate_stream(TINY, episodes=9)


def test_bounds_for_many_users_equal_those_one_by_one():
    for distribution in (Laplace(7.0), Bounded(30), FlipTail(0.4), OneStepTail(0.2, 4, 5, True)):
        users = np.array([1, 2, 5, 40, 1000, 10**6, 10**8])
        one_by_one = [distribution.bound({1.0: float(n)}, 1e-3) for n in users]
        assert np.allclose(distribution.sum_bounds(users, 1e-3), one_by_one, rtol=1e-12)


def test_a_long_block_leaves_the_stream_where_short_ones_do():
    mechanism = stream("laplace", Shape(states=9, actions=9, horizon=9), episodes=120)
    whole = mechanism.open(sampler()).noise_block(120)
    release = mechanism.open(sampler())
    with pytest.raises(InvalidInputError, match="longer stream"):
        release.noise_block(121)  # nothing is drawn, nothing is lost
    assert np.array_equal(release.noise_block(100), whole[:100])
    assert np.array_equal(release.noise_block(20), whole[100:])


@pytest.mark.parametrize("statistics", [("transitions", "rewards"), ("visits",)])
def test_pooled_randomised_response_flips_as_much(statistics):
    """Pooling is post-processing: devices send, and flip, the bits of every step all the same."""
    options = {"shape": SHAPE, "statistics": statistics}
    mechanisms = [
        stream("randomized-response", stationary=stationary, **options)
        for stationary in (False, True)
    ]
    reach = 2 * SHAPE.horizon * len(statistics)
    for mechanism in mechanisms:
        assert reach * math.log((1 - mechanism.flip) / mechanism.flip) <= 1
        assert reach * math.log((1 - mechanism.flip) / mechanism.flip) == pytest.approx(1)


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "randomized-response"])
def test_the_last_transition_of_002_is_not_counted(name, stationary):
    """Two users who differ in the state after the last step are the same user: 002, Section 4.1."""
    options = {"stationary": stationary, "last_transitions": False}
    mechanism = stream(name, shape=Shape(2, 1, 3), **options)
    assert mechanism.guarantee.epsilon == 1.0
    kept = stream(name, shape=Shape(2, 1, 3), stationary=stationary)

    def released(mechanism, states, way):
        one = Trajectories(np.array([states]), np.zeros((1, 3), np.int64), np.ones((1, 3)))
        counts = one.counts(mechanism.shape, np.random.default_rng(0))
        if way == "block":
            return by_the_rule(mechanism.open(sampler()).block(1), mechanism, [counts])
        public = mechanism.open(sampler()).add(counts)
        parts = public.transitions, public.visits, public.rewards
        return np.concatenate([part.ravel() for part in parts])

    for way in ("add", "block"):
        here, there, elsewhere = (
            released(mechanism, states, way)
            for states in ([0, 1, 0, 0], [0, 1, 0, 1], [0, 1, 1, 1])
        )
        assert np.array_equal(here, there)
        assert not np.array_equal(here, elsewhere)  # the one before is counted, and all visits
        assert not np.array_equal(
            released(kept, [0, 1, 0, 0], way), released(kept, [0, 1, 0, 1], way)
        )
    for refused in (mechanism.encoder, mechanism.certified):
        with pytest.raises(UnsupportedError):
            refused()


@pytest.mark.parametrize("stationary", [True, False])
def test_bits_of_the_last_transition_are_not_drawn(stationary):
    """Their noise would be noise for nothing, and the estimates biased."""
    shape = Shape(2, 1, 3)
    options = {"stationary": stationary, "last_transitions": False}
    mechanism = stream("randomized-response", shape=shape, episodes=4_000, **options)
    nobody = Counts(1, np.zeros(shape.transitions, np.int64), np.zeros(shape.visits, np.int64))
    running = mechanism.open(sampler())
    for _ in range(4_000):
        public = running.add(nobody)
    variance = mechanism.noise_variance(4_000)
    for part in ("transitions", "visits", "rewards"):
        z = getattr(public, part) / math.sqrt(variance[part])
        assert np.abs(z).max() < 5
        if part == "transitions" and not stationary:
            assert not z[-1].any()
    assert variance["transitions"] == pytest.approx(
        variance["visits"] * (2 / 3 if stationary else 1)
    )


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "randomized-response"])
def test_without_the_last_transition_the_guarantee_is_exact(name, stationary):
    """By enumeration of the real code on all neighbours: no more than guaranteed, pure no less."""
    few = {"shape": Shape(1, 2, 2), "statistics": ("transitions",)}
    sizes = few if name == "randomized-response" else {"shape": Shape(2, 1, 2)}
    options = {"stationary": stationary, "last_transitions": False}
    mechanism = stream(name, episodes=1, **sizes, **options)
    for way in (ADD, BLOCK):
        found = examine(stream_path(mechanism, way, 1), secure=False)
        epsilon, delta = found.view.curve(1.0, mechanism.guarantee.delta)
        assert found.problems == () and epsilon <= 1 + 1e-9
        assert delta <= mechanism.guarantee.delta + 1e-12
        assert name == "gaussian" or epsilon == pytest.approx(1.0)
    assert name == "randomized-response" or check_mechanism(mechanism).ok
