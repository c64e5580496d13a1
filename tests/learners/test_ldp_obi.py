"""LDP-OBI: optimism for what has hardly been tried, and the constants of its bonus."""

import numpy as np
import pytest

from discreet import Local, NoPrivacy, learn
from discreet.errors import InvalidInputError
from discreet.learners.continual import make_learner
from discreet.learners.ldp_obi import LdpObi, LdpObiSettings
from discreet.mdp import RandomMDP, evaluate, plan, uniform_policy
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts

MDP = RandomMDP(states=2, actions=2, horizon=2)
RANDOMISERS = [
    Local(20, mechanism="laplace"),
    Local(2, mechanism="laplace"),
    Local(2, 1e-6, mechanism="gaussian"),
    Local(20, mechanism="randomized-response"),
    Local(2, 1e-6, mechanism="bounded"),
    Local(20, mechanism="one-step"),
    NoPrivacy(),
]


def loss(mdp):
    return plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))


def obi(trust, episodes=100_000, **settings):
    return make_learner(LdpObi, MDP, trust, episodes, np.random.default_rng(0), settings)


def one_action_known(users, plan):
    """Action 0 always pays 1 and stays; action 1 has never been played."""
    visits = np.zeros((1, 2, 2))
    visits[..., 0] = users
    transitions = np.zeros((1, 2, 2, 2))
    for s in range(2):
        transitions[0, s, 0, s] = users
    return PrivateCounts(
        users=users,
        transitions=transitions,
        visits=visits,
        rewards=visits.copy(),
        noise_variance=dict.fromkeys(STATISTICS, 0.0),
        support=np.ones((1, 2, 2), np.bool_),
        guarantee=plan.guarantee,
    )


@pytest.mark.parametrize("constants", ["theory", "practical"])
@pytest.mark.parametrize("trust", RANDOMISERS, ids=str)
def test_an_untried_action_beats_a_known_reward_of_one(trust, constants):
    learner = obi(trust, constants=constants)
    for users in (100, 10_000, 99_999):
        policy = learner.next_policy(one_action_known(users, learner.mechanism))
        assert np.array_equal(policy.actions, np.ones((2, 2))), users


@pytest.mark.parametrize("seed", [1010, 1039])
def test_no_run_locks_in(seed):
    """With the bias scaled down, a run on each of these lost 200% of what uniform play loses."""
    mdp = RandomMDP(states=2, actions=2, horizon=2, seed=seed)
    task = {"learner": "ldp-obi", "trust": Local(20, mechanism="laplace"), "episodes": 20_000}
    for run in range(4):
        result = learn(mdp, **task, seed=1, run=run)
        assert result.final_regret < 0.25 * 20_000 * loss(mdp)


@pytest.mark.parametrize("trust", [Local(20, mechanism="one-step"), NoPrivacy()], ids=str)
def test_no_run_locks_in_with_other_reports(trust):
    for seed in (1010, 1039):
        mdp = RandomMDP(states=2, actions=2, horizon=2, seed=seed)
        for run in range(3):
            result = learn(mdp, learner="ldp-obi", trust=trust, episodes=20_000, seed=run)
            assert result.final_regret < 0.25 * 20_000 * loss(mdp)


@pytest.mark.core
def test_printed_constants_give_the_printed_bonus():
    """Proposition 4 at alpha = 2: ((alpha+1)·c2 + c1) and (S·c4 + (alpha+1)·c3)."""
    learner = obi(Local(2, mechanism="laplace"), constants="theory")
    users = np.array([1, 50, 5000])
    c, c3 = learner.noise_bounds(users)
    rows = learner.coefficients(users)
    np.testing.assert_allclose(rows[:, 3], 3 * c + c)
    np.testing.assert_allclose(rows[:, 5], 2 * c + 3 * c3)


@pytest.mark.core
@pytest.mark.parametrize("trust", RANDOMISERS)
@pytest.mark.parametrize("union", ["known", "printed"])
def test_bounds_depend_on_how_many_users_came_not_on_who_asks_beside_them(trust, union):
    learner = obi(trust, episodes=1000, union=union)
    users = np.array([1000, 0, 7, 7, 999, 500])
    alone = np.concatenate([learner.coefficients(users[i : i + 1]) for i in range(len(users))])
    np.testing.assert_array_equal(learner.coefficients(users), alone)
    together = np.transpose(learner.noise_bounds(users))
    np.testing.assert_array_equal(
        together, [np.ravel(learner.noise_bounds(users[i : i + 1])) for i in range(len(users))]
    )
    assert learner.coefficients(users[:0]).shape == (0, 6)


@pytest.mark.core
@pytest.mark.parametrize("union", ["known", "printed"])
def test_more_users_than_episodes_have_no_bound(union):
    """Compiled code would read beyond the end of the table: a bonus of next to nothing."""
    learner = obi(Local(2, mechanism="laplace"), episodes=1000, union=union)
    assert learner.coefficients(np.array([1000])).min() > 0
    for ask in (learner.coefficients, learner.noise_bounds):
        with pytest.raises(InvalidInputError, match=r"at most 1000 users.*got 1001"):
            ask(np.array([3, 1001]))


@pytest.mark.core
def test_multipliers_never_scale_what_pays_for_the_shift():
    """The estimate misses alpha·c of its denominator in every run: that is bias, not noise."""
    learner = obi(Local(2, mechanism="laplace"), privacy_scale=0.0, bonus_scale=0.0, alpha=1.5)
    row = learner.coefficients(np.array([1000]))[0]
    assert row[0] > 0
    np.testing.assert_allclose(row[3], row[0])
    np.testing.assert_allclose(row[5], row[1])


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_alpha_must_exceed_one(alpha):
    """Algorithm 2 and Proposition 4: alpha > 1."""
    with pytest.raises(InvalidInputError, match="alpha > 1"):
        LdpObiSettings.theory(alpha=alpha)
    assert LdpObiSettings.theory(alpha=1.001).alpha == 1.001


def test_printed_noise_of_the_learners_of_002_is_that_of_002():
    """Laplace of scale 6H/eps, also where only ``calibration="paper"`` is said."""
    for learner in ("ldp-obi", "ldp-psrl"):
        trust = Local(2, mechanism="laplace", calibration="paper")
        result = learn(RandomMDP(), learner=learner, trust=trust, episodes=20)
        assert result.guarantee.epsilon == pytest.approx(2.0)
