"""DemandResponse: the tariff, the meter and the battery."""

import numpy as np
import pytest

from discreet.mdp import make, plan

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
    actions = plan(DEMAND).policy.actions
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
