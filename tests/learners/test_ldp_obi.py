"""LDP-OBI: its constants and estimates by hand, and the compiled induction."""

import numpy as np
import pytest

from discreet import Local, NoPrivacy, learn
from discreet.errors import InvalidInputError
from discreet.learners.continual import make_learner
from discreet.learners.continual import planned as planned_by
from discreet.learners.ldp_obi import LdpObi, LdpObiSettings, signed_values
from discreet.mdp import RandomMDP, evaluate, solve, uniform_policy
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts
from helpers.compiled import planned, random_counts

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
    return solve(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))


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
        policy = planned_by(learner, one_action_known(users, learner.mechanism))
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


HORIZON, STATES, CHOICES = 3, 3, 2
ROW = (2.0, 3.0, 0.4, 1.1, 0.3, 0.7)
"""alpha·c2, alpha·c3, root and linear of beta_r, root and linear of beta_p."""
NO_BONUS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def run(row, counts, horizon=HORIZON, seed=0):
    memory = np.zeros((1, horizon, *counts[1].shape[1:]))
    return planned(signed_values, row, counts, memory=memory, seed=seed)


def by_the_equations(row, counts, horizon=HORIZON):
    """Q ``[H, S, A]`` and V ``[H + 1, S]`` of equations 4 and 5."""
    shift_r, shift_p, root_r, linear_r, root_p, linear_p = row
    transitions, visits, rewards = counts
    D_r, D_p = visits + shift_r, transitions.sum(axis=-1) + shift_p
    beta_r = root_r / np.sqrt(D_r) + linear_r / D_r
    beta_p = root_p / np.sqrt(D_p) + linear_p / D_p
    q = np.zeros((horizon, *visits.shape[1:]))
    values = np.zeros((horizon + 1, visits.shape[1]))
    for h in reversed(range(horizon)):
        g, ahead = (h if len(visits) > 1 else 0), horizon - h
        expected = (transitions[g] / D_p[g][..., None]) @ values[h + 1]
        q[h] = rewards[g] / D_r[g] + beta_r[g] + ahead * beta_p[g] + expected
        values[h] = np.minimum(ahead, q[h].max(axis=-1))
    return q, values


@pytest.mark.parametrize("groups", [1, HORIZON])
@pytest.mark.parametrize("seed", range(4))
def test_values_and_actions_are_those_of_the_equations(seed, groups):
    counts = random_counts(seed, groups)
    found = run(ROW, counts)
    q, values = by_the_equations(ROW, counts)
    np.testing.assert_allclose(found.memory[0], q, rtol=1e-12)
    np.testing.assert_allclose(found.values, values, rtol=1e-12)
    assert np.array_equal(found.actions, q.argmax(axis=-1))


def test_pooled_counters_serve_every_step():
    pooled = random_counts(5, 1)
    repeated = tuple(np.repeat(part, HORIZON, axis=0) for part in pooled)
    one, other = run(ROW, pooled), run(ROW, repeated)
    assert np.array_equal(one.actions, other.actions)
    assert np.array_equal(one.values, other.values)


def test_one_state_by_hand():
    """Ten visits, eight rewards, shift two: r = 8/12, p = 10/12; no bonus."""
    counts = (np.full((1, 1, 1, 1), 10.0), np.full((1, 1, 1), 10.0), np.full((1, 1, 1), 8.0))
    found = run((2.0, 2.0, 0.0, 0.0, 0.0, 0.0), counts, horizon=2)
    last = 8 / 12
    assert found.values[:, 0].tolist() == pytest.approx([last + 10 / 12 * last, last, 0.0])


@pytest.mark.parametrize("unknown", ["visits", "transitions"])
def test_a_denominator_that_is_not_positive_means_unknown(unknown):
    transitions, visits, rewards = random_counts(1, 1)
    if unknown == "visits":
        visits[0, 1, 0] = -ROW[0]
    else:
        transitions[0, 1, 0] = -10.0
    found = run(ROW, (transitions, visits, rewards))
    assert (found.memory[0, :, 1, 0] == np.inf).all()
    assert (found.actions[:, 1] == 0).all()
    assert found.values[:, 1].tolist() == [3.0, 2.0, 1.0, 0.0]
    assert np.isfinite(found.memory[0, :, [0, 2]]).all()


def test_nothing_known_is_a_tie_of_all_actions():
    nothing = (np.zeros((1, 3, 4, 3)), np.zeros((1, 3, 4)), np.zeros((1, 3, 4)))
    chosen = [run(NO_BONUS, nothing, seed=seed).actions for seed in range(60)]
    counts = np.bincount(np.concatenate(chosen).ravel(), minlength=4)
    total = counts.sum()
    assert abs(counts - total / 4).max() < 5 * np.sqrt(total * 3 / 16)


def test_signed_estimates_are_not_clipped():
    """Noise may push rewards below zero and transitions out of the simplex; Q follows."""
    counts = (np.array([[[[-4.0]], [[30.0]]]]).reshape(1, 1, 2, 1), np.full((1, 1, 2), 10.0),
              np.array([[[-5.0, 3.0]]]))  # fmt: skip
    found = run((0.0, 8.0, 0.0, 0.0, 0.0, 0.0), counts, horizon=2)
    assert found.memory[0, 1, 0].tolist() == [-0.5, 0.3]
    assert found.memory[0, 0, 0].tolist() == pytest.approx(
        [-0.5 - 4 / 4 * 0.3, 0.3 + 30 / 38 * 0.3]
    )


def test_no_step_is_worth_more_than_one():
    counts = random_counts(2, HORIZON)
    found = run((2.0, 3.0, 50.0, 50.0, 50.0, 50.0), counts)
    assert found.values[:, 0].tolist() == [3.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_renamed_actions_give_the_renamed_policy(seed):
    counts = random_counts(seed, HORIZON)
    renamed = tuple(np.flip(part, axis=2) for part in counts)
    one, other = run(ROW, counts), run(ROW, renamed)
    assert np.array_equal(other.actions, CHOICES - 1 - one.actions)
    np.testing.assert_allclose(other.values, one.values, rtol=1e-12)


def test_more_bonus_is_more_optimism():
    counts = random_counts(3, 1)
    values = [
        run((2.0, 3.0, scale, 0.0, scale, 0.0), counts).values[0] for scale in (0.0, 0.1, 0.2)
    ]
    assert (values[0] < values[1]).all()
    assert (values[1] < values[2]).all()
