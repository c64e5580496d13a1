"""Problems from practice: shapes, numbers from publications, ICU-Sepsis."""

import sys

import gymnasium
import numpy as np
import pytest

from discreet.errors import MissingExtraError, UnsupportedError
from discreet.mdp import (
    Shape,
    admissible_actions,
    evaluate,
    from_gymnasium,
    make,
    solve,
    uniform_policy,
)

TREATMENT = make("Treatment")


def test_remission_rates_are_those_of_the_trial():
    """Among those who stay in care, as STAR*D reports them per attempt."""
    moves = TREATMENT.transitions[0]
    for attempt, published in enumerate((0.368, 0.306, 0.137, 0.130)):
        row = moves[attempt, 1]
        assert row[4] / (1 - row[6]) == pytest.approx(published)
    assert moves[0, 0, 4] / (1 - moves[0, 0, 6]) == pytest.approx(0.23)


@pytest.mark.parametrize(("action", "published"), [(0, 0.41), (1, 0.18)])
def test_relapse_rates_compound_to_a_year(action, published):
    row = TREATMENT.transitions[0, 5, action]
    quarterly = row[1] / (1 - row[6])
    assert 1 - (1 - quarterly) ** 4 == pytest.approx(published)


def test_a_combination_doubles_the_odds():
    moves = TREATMENT.transitions[0]

    def odds(attempt, action):
        remission = moves[attempt, action, 4] / (1 - moves[attempt, action, 6])
        return remission / (1 - remission)

    for attempt in range(4):
        assert odds(attempt, 2) == pytest.approx(2 * odds(attempt, 1))


def test_quality_of_life_is_mapped_linearly():
    rewards = TREATMENT.rewards[0]
    scale = 0.85 - 0.33
    assert (rewards.min(), rewards.max()) == (0, 1)
    assert rewards[4, 0] - rewards[0, 0] == pytest.approx(1)
    assert rewards[0, 1] == pytest.approx((0.58 - 0.04 - 0.33) / scale)
    assert rewards[5, 0] - rewards[5, 2] == pytest.approx(0.08 / scale)


def test_treatment_never_returns_from_lost_care_or_to_untried():
    moves = TREATMENT.transitions[0]
    assert (moves[6, :, 6] == 1).all()
    assert not moves[1:, :, 0].any()


def test_an_ill_patient_is_treated_and_a_well_one_is_let_go():
    first = solve(TREATMENT).policy.actions
    assert (first[0, :4] > 0).all()
    assert first[-1, 5] == 0


RECOMMENDER = make("Recommender")


def test_average_appeal_is_that_of_movielens():
    fresh = RECOMMENDER.rewards[0, [0, 7]]
    assert fresh.mean() == pytest.approx(0.55)
    np.testing.assert_allclose(fresh[0], fresh[1][::-1])


def test_repeats_tire_and_variety_recovers():
    likes = RECOMMENDER.rewards[0]
    fresh, once, often = likes[0, 0], likes[1, 0], likes[2, 0]
    assert once == pytest.approx(0.7 * fresh)
    assert often == pytest.approx(0.7 * once)
    assert likes[3, 0] == fresh  # after another kind


def test_people_leave_at_the_quoted_rates_and_stay_away():
    moves, likes = RECOMMENDER.transitions[0], RECOMMENDER.rewards[0]
    leaving = moves[:14, :, 14]
    np.testing.assert_allclose(leaving, 0.03 * likes[:14] + 0.25 * (1 - likes[:14]))
    assert (moves[14, :, 14] == 1).all()
    assert not likes[14].any()


def test_tastes_never_mix():
    moves = RECOMMENDER.transitions[0]
    assert not moves[:7, :, 7:14].any()
    assert not moves[7:14, :, :7].any()


DEMAND = make("DemandResponse")


def grid_energy(need, gain):
    return need + gain / 0.9 if gain > 0 else max(need + gain, 0)


@pytest.mark.parametrize("h", range(8))
def test_the_battery_costs_what_the_meter_shows(h):
    """An independent account of one step: prices by the hour, need, efficiency."""
    hours = [(1 + 3 * h + i) % 24 for i in range(3)]
    tariff = [5 if hour >= 23 or hour < 6 else 25 if 16 <= hour < 19 else 12 for hour in hours]
    price = np.mean(tariff)
    shape = np.array([0.5, 0.6, 1.1, 0.9, 0.9, 1.5, 1.6, 0.9])
    use = 3100 / 365 * shape / shape.sum()
    worst = 25 * grid_energy(1.4 * use.max(), 1)
    for charge in range(4):
        for much, factor in enumerate((0.6, 1.4)):
            for action, wish in enumerate((1, 0, -1)):
                gain = min(max(charge + wish, 0), 3) - charge
                cost = price * grid_energy(factor * use[h], gain)
                reward = DEMAND.rewards[h, 2 * charge + much, action]
                assert reward == pytest.approx(1 - cost / worst)


def test_the_optimum_charges_at_night_and_discharges_at_the_peak():
    actions = solve(DEMAND).policy.actions
    assert actions[0, 0] == 0
    assert (actions[5, 2:] == 2).all()


def test_demand_response_rewards_follow_the_tariff():
    mdp = make("DemandResponse")
    assert mdp.same_transitions
    cost = 1 - mdp.rewards[:, 0, 1]  # empty battery, little need, rest
    assert cost.argmax() == 5  # 16 to 19 o'clock
    assert cost.argmin() == 0
    charging = mdp.rewards[:, 0, 1] - mdp.rewards[:, 0, 0]
    assert charging[5] / charging[0] == pytest.approx(5)  # 25 pence against 5


class FakeSepsis(gymnasium.Env):
    """The interface of ICU-Sepsis in small."""

    def __init__(self):
        states, actions = 716, 3
        self.dynamics = {
            "tx_mat": np.zeros((states, actions, states)),
            "r_mat": np.zeros((states, actions, states)),
            "d_0": np.eye(states)[0],
            "admissible_actions": [[0, 1]] + [[0, 1, 2]] * (states - 1),
        }
        self.dynamics["tx_mat"][:, :, 715] = 1
        self.dynamics["tx_mat"][0, 0] = np.eye(states)[714]
        self.dynamics["r_mat"][:, :, 714] = 1


def test_inadmissible_actions_are_as_the_mean_of_the_others():
    mdp = from_gymnasium(FakeSepsis(), horizon=2)
    assert np.flatnonzero(mdp.transitions[0, 0, 2]).tolist() == [714, 715]
    assert mdp.rewards[0, 0].tolist() == [1, 0, 0.5]


def test_icu_sepsis():
    pytest.importorskip("icu_sepsis")
    mdp = make("ICU-Sepsis")
    env = gymnasium.make("Sepsis/ICU-Sepsis-v2")
    assert mdp.shape == Shape(states=716, actions=25, horizon=20)
    assert mdp.stationary
    allowed = admissible_actions(env)
    assert np.array_equal(mdp.allowed, allowed)
    best = solve(mdp)
    # Restricting the choice to admissible actions loses nothing.
    values = best.values
    for h in (0, 10, 18, 19):
        q = mdp.rewards[h] + mdp.transitions[h] @ values[h + 1]
        np.testing.assert_allclose(np.where(allowed, q, -1).max(axis=1), values[h], atol=1e-12)
    assert best.value == pytest.approx(0.792216, abs=1e-6)
    assert evaluate(mdp, uniform_policy(mdp.shape)) == pytest.approx(0.685447, abs=1e-6)
    with pytest.raises(UnsupportedError, match="all are admissible"):
        admissible_actions(gymnasium.make("FrozenLake-v1"))


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "icu_sepsis", None)
    with pytest.raises(MissingExtraError, match=r"discreet\[health\]"):
        make("icu-sepsis")


def test_its_arrays_are_recognised_and_read_in_their_own_units():
    env = FakeSepsis()
    env.dynamics["r_mat"] *= -15
    mdp = from_gymnasium(env, horizon=1)
    assert mdp.reward_map == (15.0, -15.0)
    assert mdp.rewards[0, 0].tolist() == [0, 1, 0.5]
    assert mdp.reward_kind == "bernoulli"
    assert mdp.reward_map.original(evaluate(mdp, [[0] * 716]), horizon=1) == -15
    del env.dynamics["d_0"]
    with pytest.raises(UnsupportedError, match="does not expose a finite model"):
        from_gymnasium(env, horizon=1)


def test_the_arrays_of_the_environment_stay_as_they_are():
    env = FakeSepsis()
    before = env.dynamics["tx_mat"].copy()
    from_gymnasium(env, horizon=1)
    np.testing.assert_array_equal(env.dynamics["tx_mat"], before)


def test_admissible_actions_are_a_mask_of_states_and_actions():
    mask = admissible_actions(FakeSepsis())
    assert mask.shape == (716, 3)
    assert np.argwhere(~mask).tolist() == [[0, 2]]
