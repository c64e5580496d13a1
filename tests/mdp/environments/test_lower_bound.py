"""LowerBound: a complete tree, fair coins, one better arm."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp import evaluate, make, plan, uniform_policy
from discreet.mdp.environments.synthetic import hardest_advantage, least_regret


@pytest.mark.parametrize(("depth", "actions"), [(1, 2), (2, 3), (3, 2)])
def test_lower_bound_by_hand(depth, actions):
    mdp = make("LowerBound", depth=depth, actions=actions, horizon=9, advantage=0.3)
    assert mdp.shape.states == sum(actions**level for level in range(depth)) + 2
    paid = 9 - depth
    assert plan(mdp).value == pytest.approx(0.8 * paid)
    leaves = actions ** (depth - 1)
    chance = 0.5 + 0.3 / (leaves * actions)
    assert evaluate(mdp, uniform_policy(mdp.shape)) == pytest.approx(chance * paid)


def test_inner_nodes_lead_to_their_own_children():
    moves = make("LowerBound", depth=3, actions=2).transitions[0]
    children = [moves[node, action].argmax() for node in range(3) for action in range(2)]
    assert children == [1, 2, 3, 4, 5, 6]


def test_exactly_one_arm_is_better():
    mdp = make("LowerBound", depth=2, actions=3, advantage=0.1)
    good = mdp.shape.states - 2
    chance = mdp.transitions[0, 1:good, :, good]
    assert chance.shape == (3, 3)
    assert np.sort(chance.ravel()).tolist() == [0.5] * 8 + [0.6]


def test_without_an_advantage_nothing_is_to_be_learned():
    mdp = make("LowerBound", advantage=0.0)
    assert plan(mdp).value == pytest.approx(evaluate(mdp, uniform_policy(mdp.shape)))


def test_the_hardest_advantage_by_hand():
    """n arms, K users: sqrt(n/(8·kappa·K)), kappa from Pinsker's argument."""
    assert hardest_advantage(9, 100_000) == pytest.approx(math.sqrt(9 / (8 * 8 / 3 * 100_000)))
    told = math.exp(0.2) * math.expm1(0.1) ** 2
    assert hardest_advantage(9, 100_000, 0.1) == pytest.approx(math.sqrt(9 / (8 * told * 100_000)))
    assert hardest_advantage(9, 100_000, 50.0) == hardest_advantage(9, 100_000)
    assert hardest_advantage(9, 10, 0.1) == 0.25
    ratio = least_regret(9, 400_000, 6, 0.1) / least_regret(9, 100_000, 6, 0.1)
    assert ratio == pytest.approx(2.0)  # grows like sqrt(K)


def test_the_hardest_advantage_under_central_privacy_by_hand():
    """n/(16·(e^eps - 1)·K) where that is more than without privacy: small epsilon, few users."""
    found = hardest_advantage(9, 10_000, 0.001, "central")
    assert found == pytest.approx(9 / (16 * math.expm1(0.001) * 10_000))
    assert hardest_advantage(9, 10_000, 0.1, "central") == hardest_advantage(9, 10_000)
    assert hardest_advantage(9, 100, 0.001, "central") == 0.25
    with pytest.raises(InvalidInputError, match="trust"):
        hardest_advantage(9, 100, 0.1, "shuffle")
    mdp = make("LowerBound", episodes=10_000, epsilon=0.001, trust="central")
    assert mdp.transitions[0, :4, :, 4].max() == pytest.approx(0.5 + found)
    price = 10_000 * (0.75 - 1 / 9) * found * 6
    assert least_regret(9, 10_000, 6, 0.001, "central") == pytest.approx(price)
    more = least_regret(9, 20_000, 6, 0.001, "central")
    assert more == pytest.approx(price)  # S·A·H/epsilon: no more users, no more regret


def private_plays(epsilon, advantage, users):
    """Exact laws of the arms that a private learner plays: equal arms, and arm 0 better.

    There are two; each choice is epsilon-DP in the outcome of every user before.
    """
    laws = []
    for better in (0.0, advantage):
        law = {(): {(0, 0): 1.0}}  # plays -> good outcomes minus bad ones per arm -> probability
        for _ in range(users):
            following = {}
            for plays, sums in law.items():
                for state, mass in sums.items():
                    first = private_choice(state[0] - state[1], epsilon)
                    for arm, chance in ((0, first), (1, 1 - first)):
                        good = 0.5 + better * (arm == 0)
                        for outcome, probability in ((1, good), (-1, 1 - good)):
                            after = list(state)
                            after[arm] += outcome
                            part = following.setdefault((*plays, arm), {})
                            key = tuple(after)
                            part[key] = part.get(key, 0.0) + mass * chance * probability
            law = following
        laws.append({plays: sum(sums.values()) for plays, sums in law.items()})
    return laws


def private_choice(difference, epsilon):
    """Arm 0 by the exponential mechanism: one user moves the difference by two."""
    return 1 / (1 + math.exp(-epsilon * difference / 2))


def test_private_plays_tell_as_little_as_proved():
    """KL <= 2·(e^eps - 1)·Delta·E[N_0] for a learner of epsilon/K per choice."""
    users, advantage, epsilon = 6, 0.2, 0.6
    equal, better = private_plays(epsilon / users, advantage, users)
    information = sum(p * math.log(p / better[plays]) for plays, p in equal.items())
    plays_of_it = sum(p * plays.count(0) for plays, p in equal.items())
    assert 0 < information <= 2 * math.expm1(epsilon) * advantage * plays_of_it
    for plays, p in equal.items():  # the inequality behind it, sequence by sequence
        factor = (1 + 2 * advantage * math.expm1(epsilon)) ** plays.count(0)
        assert p <= factor * better[plays] * (1 + 1e-12)


def test_the_instance_takes_its_gap_from_users_and_epsilon():
    mdp = make("LowerBound", depth=2, actions=3, episodes=10_000, epsilon=0.5)
    good, best = mdp.shape.states - 2, hardest_advantage(9, 10_000, 0.5)
    assert mdp.transitions[0, :good, :, good].max() == pytest.approx(0.5 + best)
    with pytest.raises(InvalidInputError, match="Expected episodes beside epsilon"):
        make("LowerBound", epsilon=1.0)


def test_no_play_beats_the_least_regret_where_it_is_proved():
    """Always the same arm, and a uniformly random one: both lose at least that much."""
    arms, users, paid = 9, 10_000, 6
    mdp = make("LowerBound", depth=2, actions=3, horizon=8, episodes=users)
    gap = plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    assert users * gap > least_regret(arms, users, paid)
