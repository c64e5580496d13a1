"""Test problems of the literature, by hand and by their known optima."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp import evaluate, make, solve, uniform_policy
from discreet.mdp.environments.synthetic import hardest_advantage, least_regret


@pytest.mark.core
def test_names_are_case_insensitive_and_unknown_ones_get_a_suggestion():
    assert make("riverSWIM").name == "RiverSwim"
    with pytest.raises(UnknownNameError, match="did you mean 'RiverSwim'"):
        make("RiverSwin")
    with pytest.raises(UnknownNameError, match="did you mean 'states'"):
        make("RiverSwim", state=4)


def test_relabel_is_reproducible_and_keeps_value_and_stationarity():
    plain, one, two = make("RiverSwim"), make("RiverSwim", relabel=3), make("RiverSwim", relabel=3)
    assert one.stationary
    np.testing.assert_array_equal(one.transitions, two.transitions)
    assert (one.transitions != plain.transitions).any()
    assert solve(one).value == pytest.approx(solve(plain).value)


def test_a_chain_needs_two_states():
    with pytest.raises(InvalidInputError, match="states=1"):
        make("RiverSwim", states=1)


def test_the_current_is_that_of_the_paper():
    mdp = make("RiverSwim", states=5)
    moves = mdp.transitions[0]
    assert moves[2, 1].tolist() == [0, 0.05, 0.6, 0.35, 0]
    assert moves[0, 1, :2].tolist() == [0.4, 0.6]
    assert moves[4, 1, 3:].tolist() == [0.4, 0.6]
    assert (moves[np.arange(5), 0, np.maximum(np.arange(5) - 1, 0)] == 1).all()


def test_only_both_ends_pay():
    rewards = make("RiverSwim", states=5).rewards[0]
    assert np.argwhere(rewards > 0).tolist() == [[0, 0], [4, 1]]
    assert (rewards[0, 0], rewards[4, 1]) == (0.005, 1)


def test_two_states_are_the_shortest_river():
    mdp = make("RiverSwim", states=2, horizon=1)
    assert solve(mdp).value == pytest.approx(0.005)


def test_double_chain_by_hand():
    mdp = make("DoubleChain", length=2, horizon=4, success=1.0, consolation=0.5)
    # Enter, advance, then two paid steps.
    assert solve(mdp).value == pytest.approx(2)
    assert max(evaluate(mdp, np.full((4, 5), a)) for a in (0, 1)) == pytest.approx(1)


def test_going_back_leads_to_the_start_from_everywhere_in_a_chain():
    moves = make("DoubleChain", length=3).transitions[0]
    assert moves.shape == (7, 2, 7)
    assert (moves[1:, 1, 0] == 1).all()


def test_only_the_ends_pay():
    rewards = make("DoubleChain", length=3, consolation=0.6).rewards[0]
    paid = {(int(s), int(a)): float(rewards[s, a]) for s, a in np.argwhere(rewards > 0)}
    assert paid == {(3, 0): 0.6, (6, 0): 1.0}


@pytest.mark.parametrize("success", [0.25, 1.0])
def test_an_advance_fails_as_often_as_guaranteed(success):
    moves = make("DoubleChain", success=success).transitions[0]
    assert moves[1, 0, 2] == success
    assert moves[1, 0, 1] == 1 - success


def test_chains_of_one_state_are_two_arms():
    mdp = make("DoubleChain", length=1, horizon=3, consolation=0.5)
    assert mdp.shape.states == 3
    assert solve(mdp).value == pytest.approx(2)


def test_six_arms_by_hand():
    mdp = make("SixArms", horizon=3)
    # Two paid steps behind the sure door, or two attempts at a harder one: door k pays
    # p (2 r) + (1 - p) p r over three steps.
    doors = zip((1, 0.15, 0.1, 0.05, 0.03, 0.01), (50, 133, 300, 800, 1660, 6000), strict=True)
    worth = [(2 * p + (1 - p) * p) * r / 6000 for p, r in doors]
    assert solve(mdp).value >= max(worth) - 1e-12
    first = int(solve(mdp).policy.actions[0, 0])
    assert worth[first] == pytest.approx(max(worth), abs=0.003)


def test_every_room_has_one_paying_action_which_stays():
    mdp = make("SixArms")
    rewards, moves = mdp.rewards[0], mdp.transitions[0]
    assert not rewards[0].any()
    for room in range(1, 7):
        (action,) = np.flatnonzero(rewards[room])
        assert action == 6 - room
        assert moves[room, action, room] == 1
        others = np.delete(np.arange(6), action)
        assert (moves[room, others, 0] == 1).all()


def test_harder_doors_pay_more():
    mdp = make("SixArms")
    opens = [mdp.transitions[0, 0, door, door + 1] for door in range(6)]
    pays = [mdp.rewards[0, door + 1].max() for door in range(6)]
    assert opens == sorted(opens, reverse=True)
    assert pays == sorted(pays)
    assert pays[-1] == 1


def test_random_mdp_follows_its_seed_and_switches():
    one, two = (make("RandomMDP", states=4, seed=seed) for seed in (1, 2))
    assert (one.transitions != two.transitions).any()
    assert set(np.unique(one.rewards)) <= {0.0, 1.0}
    assert one.stationary
    assert not make("RandomMDP", horizon=3, stationary=False).stationary


def test_the_same_seed_is_the_same_mdp():
    one, two = (make("RandomMDP", states=3, actions=4, horizon=5, seed=9) for _ in range(2))
    np.testing.assert_array_equal(one.transitions, two.transitions)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    assert one.shape.visits == (5, 3, 4)


def test_a_larger_concentration_spreads_the_moves():
    sharp, flat = (make("RandomMDP", states=6, concentration=c, seed=1) for c in (0.01, 100.0))
    assert sharp.transitions.max(axis=-1).mean() > 0.8
    assert flat.transitions.max(axis=-1).mean() < 0.4


def test_episodes_begin_in_the_first_state_and_rewards_are_certain():
    mdp = make("RandomMDP", states=3)
    assert mdp.initial.tolist() == [1, 0, 0]
    assert mdp.reward_kind == "deterministic"


@pytest.mark.parametrize("stationary", [True, False])
def test_steps_differ_only_if_asked_for(stationary):
    mdp = make("RandomMDP", states=3, horizon=4, stationary=stationary)
    assert (mdp.transitions == mdp.transitions[0]).all() == stationary


def test_grid_world_by_hand():
    mdp = make("GridWorld", layout="S.G", slip=0.0, horizon=5)
    assert solve(mdp).value == pytest.approx(3)
    blocked = make("GridWorld", layout="S#G", horizon=5)
    assert solve(blocked).value == 0
    slippery = make("GridWorld", layout="SG", slip=0.2, horizon=2)
    assert solve(slippery).value == pytest.approx(0.8)


def test_a_slip_goes_to_both_sides_equally():
    mdp = make("GridWorld", layout="...|.S.|..G", slip=0.2)
    row = mdp.transitions[0, 4, 0]  # up from the middle
    assert row[[1, 3, 5]].tolist() == pytest.approx([0.8, 0.1, 0.1])
    assert row.sum() == pytest.approx(1)


def test_walls_and_the_border_stop_a_move():
    mdp = make("GridWorld", layout="S#|.G", slip=0.0)
    moves = mdp.transitions[0]
    assert mdp.shape.states == 3  # a wall is no state
    assert (moves[0, [0, 1, 3], 0] == 1).all()
    assert moves[0, 2, 1] == 1


def test_holes_and_goals_are_never_left():
    mdp = make("GridWorld", layout="SOG")
    for state, pay in ((1, 0), (2, 1)):
        assert (mdp.transitions[0, state, :, state] == 1).all()
        assert (mdp.rewards[0, state] == pay).all()


def test_episodes_begin_at_the_start_wherever_it_is():
    assert np.argmax(make("GridWorld", layout="G.|.S").initial) == 3


@pytest.mark.parametrize(("depth", "actions"), [(1, 2), (2, 3), (3, 2)])
def test_lower_bound_by_hand(depth, actions):
    mdp = make("LowerBound", depth=depth, actions=actions, horizon=9, advantage=0.3)
    assert mdp.shape.states == sum(actions**level for level in range(depth)) + 2
    paid = 9 - depth
    assert solve(mdp).value == pytest.approx(0.8 * paid)
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
    assert solve(mdp).value == pytest.approx(evaluate(mdp, uniform_policy(mdp.shape)))


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
    """Exact distributions of the arms that a private learner plays: equal arms, and arm 0 better.

    There are two; each choice is epsilon-DP in the outcome of every user before.
    """
    found = []
    for better in (0.0, advantage):
        exact = {(): {(0, 0): 1.0}}  # plays -> good outcomes minus bad ones per arm -> probability
        for _ in range(users):
            following = {}
            for plays, sums in exact.items():
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
            exact = following
        found.append({plays: sum(sums.values()) for plays, sums in exact.items()})
    return found


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
    gap = solve(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    assert users * gap > least_regret(arms, users, paid)
