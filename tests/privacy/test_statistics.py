"""Releases in rows: the draws, the values and the refusals of dense releases."""

import tracemalloc

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidInputError
from discreet.mdp import RandomMDP, Shape, make
from discreet.mdp.counts import Counts
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.simulation import sample_counts
from discreet.privacy.guarantee import NO_GUARANTEE
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.privacy.statistics import Debias, PrivateCounts, flatten_rows, split_rows

STATISTICS = ("transitions", "rewards")
MDP = make("RiverSwim", states=4, horizon=6)
POLICY = DeterministicPolicy(np.random.default_rng(5).integers(0, 2, (6, 4)))
PLAYED = POLICY.support(MDP.shape, MDP.start)
TRUSTS = {
    "none": discreet.NoPrivacy(),
    "gaussian": discreet.Central(1, 1e-6),
    "laplace": discreet.Central(1, mechanism="laplace"),
    "shuffle": discreet.Shuffle(1, 1e-6, mechanism="bits"),
}


def noise_of(plan, users, sampler):
    """The mechanism's noise on each of n counters, for one that only adds noise."""
    match plan.name:
        case "none":
            return np.zeros
        case "gaussian":
            return lambda n: sampler.discrete_gaussian(plan.noise.sigma, n)
        case "laplace":
            return lambda n: sampler.discrete_laplace(plan.noise.scale, n)
    each = plan.bits(users)
    trials = users * each.bits
    return lambda n: sampler.binomial(trials, each.probability, n) - trials * each.probability


@pytest.mark.parametrize("name", TRUSTS)
def test_a_release_is_the_dense_one_draw_for_draw(name):
    mechanism = TRUSTS[name].calibrate(MDP.shape, statistics=STATISTICS)
    counts = sample_counts(MDP, POLICY, 10_000, np.random.default_rng(1))
    released = mechanism.release(
        counts, sampler=SimulationSampler(np.random.default_rng(2)), support=PLAYED
    )
    draw = noise_of(mechanism, 10_000, SimulationSampler(np.random.default_rng(2)))
    rows = int(PLAYED.sum())
    moves = counts.transitions[PLAYED] + draw(rows * MDP.shape.states).reshape(rows, -1)
    np.testing.assert_array_equal(released.row_transitions, moves)
    visits, ones = counts.visits[PLAYED], counts.rewards[PLAYED]
    if not mechanism.centred:
        np.testing.assert_array_equal(released.row_rewards, ones + draw(rows))
        assert released.visits is None
        return
    zeros, ones = np.stack([visits - ones, ones]) + draw(2 * rows).reshape(2, rows)
    np.testing.assert_array_equal(released.row_rewards, (ones - zeros) / 2)
    np.testing.assert_array_equal(released.row_visits, ones + zeros)
    for statistic in STATISTICS:  # nobody left
        np.testing.assert_array_equal(released.dropped_out[statistic], draw(MDP.horizon))


@pytest.mark.parametrize("name", TRUSTS)
def test_the_form_of_the_raw_counts_does_not_matter(name):
    # Every counter of the support gets its noise, also in rows that raw counts leave out.
    mechanism = TRUSTS[name].calibrate(MDP.shape, statistics=STATISTICS)
    rows = sample_counts(MDP, POLICY, 50, np.random.default_rng(1))
    visited = rows.at(rows.visits > 0)
    dense = Counts(50, rows.transitions, rows.rewards)
    assert len(visited.row_rewards) < len(rows.row_rewards) < len(dense.row_rewards)
    released = [
        mechanism.release(c, sampler=SimulationSampler(np.random.default_rng(2)), support=PLAYED)
        for c in (rows, visited, dense)
    ]
    for other in released[1:]:
        np.testing.assert_array_equal(other.transitions, released[0].transitions)
        np.testing.assert_array_equal(other.rewards, released[0].rewards)
        np.testing.assert_array_equal(other.support, PLAYED)


@pytest.mark.core
def test_private_counts_take_rows_or_dense_arrays():
    rng = np.random.default_rng(0)
    transitions = rng.normal(size=MDP.shape.transitions) * PLAYED[..., None]
    rewards = rng.normal(size=MDP.shape.visits) * PLAYED
    rest = ({"transitions": 1.0, "rewards": 1.0}, PLAYED, NO_GUARANTEE)
    dense = PrivateCounts(5, transitions, None, rewards, *rest)
    rows = PrivateCounts(5, transitions[PLAYED], None, rewards[PLAYED], *rest)
    for counts in (dense, rows):
        np.testing.assert_array_equal(counts.transitions, transitions)
        np.testing.assert_array_equal(counts.rewards, rewards)
        np.testing.assert_array_equal(counts.row_transitions, transitions[PLAYED])
        assert counts.visits is None
    assert (dense.centred, dense.last_transitions, dense.dropped_out) == (False, True, None)
    with pytest.raises(InvalidInputError, match="rows of support"):
        PrivateCounts(5, transitions[PLAYED][1:], None, rewards, *rest)
    with pytest.raises(InvalidInputError, match="rows of support"):
        PrivateCounts(5, transitions, None, transitions[PLAYED], *rest)


@pytest.mark.core
@pytest.mark.parametrize("name", TRUSTS)
def test_visits_outside_the_public_policy_count_as_nothing(name):
    """A batch that left the policy is released like one that stayed: no refusal tells of it."""
    mechanism = TRUSTS[name].calibrate(MDP.shape, statistics=STATISTICS)
    other = DeterministicPolicy(1 - POLICY.actions)
    strayed = sample_counts(MDP, other, 50, np.random.default_rng(1))
    assert strayed.outside(PLAYED) == 50 * MDP.horizon
    empty = Counts(50, *(np.zeros_like(part) for part in (strayed.transitions, strayed.rewards)))
    one, two = (
        mechanism.release(
            counts, sampler=SimulationSampler(np.random.default_rng(2)), support=PLAYED
        )
        for counts in (strayed, empty)
    )
    np.testing.assert_array_equal(one.transitions, two.transitions)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    assert not one.transitions[~PLAYED].any()


@pytest.mark.core
def test_flat_rows_come_back():
    counts = sample_counts(MDP, POLICY, 50, np.random.default_rng(1))
    names = ("transitions", "visits", "rewards")
    parts = split_rows(flatten_rows(counts, names).astype(float), counts.support, names)
    for name in names:
        np.testing.assert_array_equal(parts[name], getattr(counts, f"row_{name}"))


@pytest.mark.parametrize("name", ["gaussian", "shuffle", "split"])
def test_memory_of_a_release_does_not_grow_with_the_actions(name):
    trust = TRUSTS.get(name) or discreet.Local(1)

    def peak(actions):
        shape = Shape(states=40, actions=actions, horizon=5)
        mdp = RandomMDP(states=40, actions=actions, horizon=5, seed=0)
        policy = DeterministicPolicy(np.zeros((5, 40), np.int64))
        support = policy.support(shape, mdp.start)
        mechanism = trust.calibrate(shape, statistics=STATISTICS)
        rng, noise = (np.random.default_rng(seed) for seed in (1, 2))

        def once():
            mechanism.simulate(
                lambda n: sample_counts(mdp, policy, n, rng),
                10_000,
                sampler=SimulationSampler(noise),
                support=support,
            )

        once()
        tracemalloc.start()
        once()
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    small = 5 * 40 * 20 * 8  # one array [H, S, A]
    assert peak(20) < 1.2 * peak(2) + 8 * small


@pytest.mark.core
def test_one_statistic_can_have_a_scale_of_its_own():
    estimate = Debias(scales={"rewards": 0.5})
    assert estimate("rewards", np.array([-3, 4])).tolist() == [-1.5, 2.0]
    assert estimate("visits", np.array([-3, 4])).tolist() == [-3.0, 4.0]


@pytest.mark.core
@pytest.mark.parametrize("wrong", [1, "no"])
def test_last_transitions_are_asked_for_with_a_truth_value(wrong):
    with pytest.raises(InvalidInputError, match="last_transitions"):
        TRUSTS["gaussian"].calibrate(MDP.shape, last_transitions=wrong)


@pytest.mark.parametrize("mechanism", ["histogram", "gaussian", "none"])
def test_centred_sums_become_plain_sums_with_their_noise(mechanism):
    """The sums of r that a learner reads are right, and spread as their variance says."""
    trust = {
        "histogram": discreet.Shuffle(1, 1e-6),
        "gaussian": discreet.Central(1, 1e-6),
        "none": discreet.NoPrivacy(),
    }[mechanism]
    plan = trust.calibrate(MDP.shape, statistics=STATISTICS)
    counts = sample_counts(MDP, POLICY, 5000, np.random.default_rng(1)).at(PLAYED)
    sampler = SimulationSampler(np.random.default_rng(2))
    released = [plan.release(counts, sampler=sampler, support=PLAYED) for _ in range(400)]
    plain = [one.plain() for one in released]
    assert all(one.centred for one in released)
    assert not any(one.centred for one in plain)
    off = np.array([one.row_rewards for one in plain]) - counts.row_rewards
    variance = plain[0].noise_variance["rewards"]
    assert abs(off.mean()) <= 6 * np.sqrt(variance / off.size)
    assert abs(off.var() - variance) <= 0.06 * variance
    assert plain[0].plain() is plain[0]


def test_plain_sums_need_a_look_at_the_visits():
    counts = PrivateCounts(
        1,
        np.zeros((1, 1, 1, 1)),
        None,
        np.zeros((1, 1, 1)),
        {"transitions": 1.0, "rewards": 1.0},
        np.ones((1, 1, 1), bool),
        NO_GUARANTEE,
        centred=True,
        last_transitions=False,
    )
    with pytest.raises(InvalidInputError, match="last_transitions=True"):
        counts.plain()
