"""Count level and trajectory level have one distribution."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from discreet.errors import InvalidInputError
from discreet.mdp import (
    DeterministicPolicy,
    MixturePolicy,
    RiverSwim,
    Shape,
    StochasticPolicy,
    TabularMDP,
    Trajectories,
    evaluate,
    occupancy,
    sample_counts,
    sample_trajectories,
    uniform_policy,
)

FALSE_ALARM = 1e-7


def small_mdp(*, stationary, kind="bernoulli"):
    rng = np.random.default_rng(10)
    steps = () if stationary else (2,)
    return TabularMDP(
        transitions=rng.dirichlet(np.ones(2), size=(*steps, 2, 2)),
        rewards=rng.random((*steps, 2, 2)),
        initial=[0.3, 0.7],
        horizon=2,
        reward_kind=kind,
    )


def policies():
    rng = np.random.default_rng(11)
    stochastic = StochasticPolicy(rng.dirichlet(np.ones(2), size=(2, 2)))
    deterministic = DeterministicPolicy(np.array([[0, 1], [1, 0]]))
    mixture = MixturePolicy((stochastic, deterministic), np.array([0.4, 0.6]))
    return {"stochastic": stochastic, "deterministic": deterministic, "mixture": mixture}


def key(counts):
    return counts.transitions.tobytes() + counts.rewards.tobytes()


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("kind", list(policies()))
def test_both_levels_agree_on_the_joint_distribution_of_all_counts(kind, stationary):
    """Two-sample chi-squared over whole batches of two users: every dependence is compared."""
    mdp, policy, batches = small_mdp(stationary=stationary), policies()[kind], 2500
    rng = np.random.default_rng(12)
    from_counts = Counter(key(sample_counts(mdp, policy, 2, rng)) for _ in range(batches))
    episodes = sample_trajectories(mdp, policy, 2 * batches, rng)
    from_episodes = Counter(
        key(episodes[2 * i : 2 * i + 2].counts(mdp.shape, rng)) for i in range(batches)
    )
    common = [k for k, n in (from_counts + from_episodes).items() if n >= 16]
    table = np.array([[c[k] for k in common] for c in (from_counts, from_episodes)])
    rest = batches - table.sum(axis=1)
    table = np.column_stack([table, rest])
    assert table.shape[1] > 20
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("level", ["counts", "trajectories"])
@pytest.mark.parametrize("kind", list(policies()))
def test_each_level_has_the_exact_flows(kind, level):
    mdp, policy, users = small_mdp(stationary=False), policies()[kind], 40_000
    rng = np.random.default_rng(13)
    if level == "counts":
        counts = sample_counts(mdp, policy, users, rng)
    else:
        counts = sample_trajectories(mdp, policy, users, rng).counts(mdp.shape, rng)
    expected = occupancy(mdp, policy)[..., None] * mdp.transitions
    for h in range(mdp.horizon):
        possible = expected[h] > 0
        assert not counts.transitions[h][~possible].any()
        test = stats.chisquare(counts.transitions[h][possible], users * expected[h][possible])
        assert test.pvalue > FALSE_ALARM
    deviation = counts.rewards - counts.visits * mdp.rewards
    assert (np.abs(deviation) <= 6 * np.sqrt(counts.visits / 4) + 1).all()


@pytest.mark.core
def test_a_trillion_users_neither_overflow_nor_reach_impossible_states():
    mdp, users = RiverSwim(states=4, horizon=6), 10**12
    mixture = MixturePolicy(
        (uniform_policy(mdp.shape), DeterministicPolicy(np.ones((6, 4), int))), np.array([0.1, 0.9])
    )
    for seed in range(20):
        counts = sample_counts(mdp, mixture, users, np.random.default_rng(seed))
        assert counts.users == users
        assert (counts.visits.sum(axis=(1, 2)) == users).all()
        np.testing.assert_array_equal(
            counts.transitions.sum(axis=(1, 2))[:-1], counts.visits.sum(axis=2)[1:]
        )
        assert not counts.transitions[mdp.transitions == 0].any()
        assert not counts.rewards[mdp.rewards == 0].any()
        # Six standard deviations of the mean reward: false alarm about 1e-9 per seed.
        total = counts.rewards.sum() / users
        assert total == pytest.approx(evaluate(mdp, mixture), abs=6 * 6 / np.sqrt(users))


def test_no_rounding_remainder_lands_in_an_impossible_last_state():
    """0.7 + 0.2 + 0.1 falls short of one: NumPy alone would now and then use the last category."""
    row = np.array([0.7, 0.2, 0.1, 0.0])
    mdp = TabularMDP(
        transitions=np.broadcast_to(row, (4, 1, 4)), rewards=np.zeros((4, 1)), horizon=2
    )
    rng = np.random.default_rng(14)
    for _ in range(50):
        counts = sample_counts(mdp, np.zeros((2, 4), int), 10**15, rng)
        assert not counts.transitions[..., 3].any()


def test_zero_users_are_welcome():
    mdp = RiverSwim()
    rng = np.random.default_rng(0)
    policy = uniform_policy(mdp.shape)
    assert not sample_counts(mdp, policy, 0, rng).visits.any()
    assert len(sample_trajectories(mdp, policy, 0, rng)) == 0


@pytest.mark.parametrize("users", [-1, 2.5, True, 10**19])
def test_users_must_be_a_count(users):
    mdp = RiverSwim()
    with pytest.raises(InvalidInputError, match="users"):
        sample_counts(mdp, uniform_policy(mdp.shape), users, np.random.default_rng(0))


def test_mixtures_keep_their_component_for_the_whole_episode():
    mdp = RiverSwim(states=4, horizon=6)
    parts = [DeterministicPolicy(np.full((6, 4), a)) for a in (0, 1)]
    episodes = sample_trajectories(
        mdp, MixturePolicy.uniform(parts), 200, np.random.default_rng(15)
    )
    assert set(episodes.actions.sum(axis=1).tolist()) == {0, 6}


def test_deterministic_rewards_are_their_means():
    mdp = small_mdp(stationary=False, kind="deterministic")
    policy, rng = policies()["stochastic"], np.random.default_rng(16)
    episodes = sample_trajectories(mdp, policy, 20_000, rng)
    steps = np.arange(2)
    np.testing.assert_array_equal(
        episodes.rewards, mdp.rewards[steps, episodes.states[:, :-1], episodes.actions]
    )
    counts = episodes.counts(mdp.shape, rng)
    deviation = counts.rewards - counts.visits * mdp.rewards
    assert (np.abs(deviation) <= 6 * np.sqrt(counts.visits / 4) + 1).all()


def test_simulation_is_reproducible():
    mdp = RiverSwim()
    policy = uniform_policy(mdp.shape)
    one, two = (sample_trajectories(mdp, policy, 50, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(one.states, two.states)
    first, second = (sample_counts(mdp, policy, 50, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.transitions, second.transitions)


@pytest.mark.core
def test_counts_of_trajectories_by_hand():
    episodes = Trajectories(
        np.array([[0, 1, 0], [0, 1, 1]]), np.array([[1, 0], [1, 0]]), np.array([[0, 1], [1, 1.0]])
    )
    counts = episodes.counts(Shape(states=2, actions=2, horizon=2), np.random.default_rng(0))
    assert counts.users == len(episodes) == 2
    assert counts.transitions[0, 0, 1].tolist() == [0, 2]
    assert counts.transitions[1, 1, 0].tolist() == [1, 1]
    assert counts.rewards[0, 0, 1] == 1
    assert counts.rewards[1, 1, 0] == 2
    assert counts.transitions.sum() == 4


@pytest.mark.parametrize(
    ("states", "actions", "rewards", "message"),
    [
        ([[0, 1]], [[0, 0]], [[0.0, 0.0]], "states \\(n, H \\+ 1\\)"),
        ([[0.0, 1.0]], [[0]], [[0.0]], "integer states"),
        ([[0, 1]], [[0]], [[1.5]], r"rewards in \[0, 1\], got 1.5 at rewards\[0, 0\]"),
        ([[0, 1]], [[0]], [0.0], "rewards \\(n, H\\)"),
    ],
)
def test_malformed_trajectories_are_refused(states, actions, rewards, message):
    with pytest.raises(InvalidInputError, match=message):
        Trajectories(np.array(states), np.array(actions), np.array(rewards))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (Shape(states=1, actions=1, horizon=1), "states from 0 to 0, got 0 to 1"),
        (Shape(states=2, actions=1, horizon=2), "episodes of 2 steps, got 1"),
    ],
)
def test_trajectories_that_do_not_fit_the_problem_are_refused(shape, message):
    episodes = Trajectories(np.array([[0, 1]]), np.array([[0]]), np.array([[0.0]]))
    with pytest.raises(InvalidInputError, match=message):
        episodes.counts(shape, np.random.default_rng(0))


def test_a_stratified_mixture_gives_every_component_its_share():
    """No draw: seven users of three policies are two, three and two, in counts and in episodes."""
    mdp = RiverSwim(states=2, horizon=1)
    actions = [[[0, 0]], [[1, 1]], [[0, 1]]]
    mixture = MixturePolicy.uniform([DeterministicPolicy(np.array(a)) for a in actions])
    allotted = mixture.allotted(7)
    assert (allotted.weights * 7).round(9).tolist() == [2, 3, 2]
    assert allotted.key != mixture.key
    for seed in range(5):
        rng = np.random.default_rng(seed)
        assert sample_counts(mdp, allotted, 7, rng).visits[0, 0].tolist() == [4, 3]
        assert np.bincount(sample_trajectories(mdp, allotted, 7, rng).actions[:, 0]).tolist() == [
            4,
            3,
        ]
    assert len(mixture.allotted(1).components) == 1
