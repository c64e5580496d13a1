"""DemandResponse: a home battery under a tariff that depends on the time of day."""

import numpy as np

from discreet import _validate
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP

_NIGHT, _DAY, _PEAK = 5.0, 12.0, 25.0
_MIXED = (2 * _NIGHT + _DAY) / 3
_PRICES = (_NIGHT, _MIXED, _DAY, _DAY, _DAY, _PEAK, _DAY, _MIXED)
"""Pence per kWh in the eight three-hour blocks from 1 o'clock; two span a change of price."""

_DAILY_USE = 3100 / 365
_SHAPE = np.array([0.5, 0.6, 1.1, 0.9, 0.9, 1.5, 1.6, 0.9])
_EFFICIENCY = 0.9
_SPREAD = (0.6, 1.4)
_PERSISTENCE = 0.7


def DemandResponse(
    *, capacity: int = 3, horizon: int = 8, relabel: int | None = None
) -> TabularMDP:
    """Charge or use a home battery through one day of a time-of-use tariff.

    A step is three hours, an episode one day from one o'clock in the morning. A state is the charge
    (0 to ``capacity`` kWh) and whether the household needs little or much just now. Actions: 0
    charge one kWh, 1 rest, 2 use one kWh; the rest of the need comes from the grid, and what the
    battery gives beyond the need is lost. Transitions are alike at all steps, rewards are not.

    From publications: the first national time-of-use tariff in Great Britain (Green Energy UK,
    "Tide", 2017): 5 pence per kWh for seven night hours, 25 from 16 to 19 o'clock, 12 otherwise; a
    typical household's 3,100 kWh per year (Ofgem, typical domestic consumption values, 2013); a
    round-trip efficiency of 90%, the figure on current data sheets of home batteries.

    Stylised by us: the shape of the day (most at 16 to 22 o'clock), need 40% below or above it and
    persisting with probability 0.7, one kWh per step. The reward is 1 minus the cost of the step
    divided by the largest possible cost; it is not random given state and action.

    Args:
        capacity: kWh that the battery holds.
        horizon: steps per episode; beyond eight the next day follows.
        relabel: a seed to rename the actions at random in each step and state.
    """
    _validate.count(capacity=capacity, horizon=horizon)
    levels = capacity + 1
    need = _DAILY_USE * _SHAPE / _SHAPE.sum()
    transitions = np.zeros((2 * levels, 3, 2 * levels))
    costs = np.zeros((horizon, 2 * levels, 3))
    for charge in range(levels):
        for much in range(2):
            for action in range(3):
                ahead = min(max(charge + 1 - action, 0), capacity)
                state = 2 * charge + much
                transitions[state, action, 2 * ahead + much] = _PERSISTENCE
                transitions[state, action, 2 * ahead + 1 - much] = 1 - _PERSISTENCE
                for h in range(horizon):
                    bought = _bought(need[h % 8] * _SPREAD[much], ahead - charge)
                    costs[h, state, action] = _PRICES[h % 8] * bought
    worst = _PEAK * _bought(need.max() * _SPREAD[1], 1)
    mdp = TabularMDP(
        transitions=transitions,
        rewards=1 - costs / worst,
        initial=0,
        horizon=horizon,
        reward_kind="deterministic",
        name="DemandResponse",
    )
    return relabel_actions(mdp, relabel)


def _bought(need: float, charged: int) -> float:
    """KWh from the grid when the battery gains ``charged`` kWh (negative: gives)."""
    if charged > 0:
        return need + charged / _EFFICIENCY
    return max(need + charged, 0.0)
