"""Problems from practice: numbers from publications, or from records of intensive care.

``horizon`` is the steps per episode, ``relabel`` a seed to rename the actions at random, per state
where all steps are alike, else per step and state.
"""

import contextlib
import io
import warnings

import numpy as np

from discreet import _validate
from discreet.errors import MissingExtraError
from discreet.mdp.tabular import TabularMDP, relabel_actions

_REMISSION_ONE_DRUG = (0.368, 0.306, 0.137, 0.130)
_REMISSION_UNTREATED = 0.23
_RELAPSE_TREATED, _RELAPSE_UNTREATED = 0.18, 0.41
_WELL, _ILL_TREATED, _ILL_UNTREATED = 0.85, 0.58, 0.33

# Stylised: no trial measured these in this form.
_COMBINATION_ODDS = 2.0
_BURDEN = (0.0, 0.04, 0.08)
_LEAVES = (0.03, 0.05, 0.07)
_EARLY_RELAPSE = 2.0


def Treatment(*, horizon: int = 8, relabel: int | None = None) -> TabularMDP:
    """Depression care by quarters: wait, one drug, or a combination, until remission and after it.

    Seven states: 0 to 3 ill, with that many failed drug treatments (3 = three or more); 4 new and 5
    established remission; 6 lost to care. Three actions: 0 no drug, 1 one drug, 2 a combination.
    A step is three months, an episode two years. A failed treatment moves on to the next ill
    state, waiting does not. A relapse leads to state 1.

    From publications:

    - remission with one drug, 36.8%, 30.6%, 13.7% and 13.0% in the first to fourth attempt: STAR*D
      (Rush et al., 2006, American Journal of Psychiatry 163:1905), as reported there;
    - remission without treatment, 23% within three months: Whiteford et al. (2013), Psychological
      Medicine 43:1569; for later attempts scaled down like the treated rates;
    - relapse within a year, 18% on continued treatment against 41% without: Geddes et al. (2003),
      Lancet 361:653, converted to a constant quarterly rate;
    - quality of life 0.85 in remission, 0.58 treated without response, 0.33 before treatment (here:
      ill without a drug, or lost to care): Sapin et al. (2004), Health and Quality of Life Outcomes
      2:20 (EQ-5D).

    Stylised by us: a combination doubles the odds of remission at twice the burden of one drug
    (0.08 against 0.04 of quality of life); 3%, 5% and 7% per quarter leave care under the three
    actions while ill, half of that in remission; relapse is twice as likely in the first quarter
    of remission. Rewards are quality of life minus burden, mapped linearly so that the worst is 0
    and the best is 1.

    A test problem for learning from patients' data, not advice on treatment.
    """
    transitions = np.zeros((7, 3, 7))
    quality = np.zeros((7, 3))
    for a in range(3):
        stays = 1 - _LEAVES[a]
        for attempt, one_drug in enumerate(_REMISSION_ONE_DRUG):
            odds = _COMBINATION_ODDS * one_drug / (1 - one_drug)
            untreated = _REMISSION_UNTREATED * one_drug / _REMISSION_ONE_DRUG[0]
            well = stays * (untreated, one_drug, odds / (1 + odds))[a]
            row = transitions[attempt, a]
            row[6], row[4] = _LEAVES[a], well
            row[attempt if a == 0 else min(attempt + 1, 3)] += stays - well
        stays = 1 - _LEAVES[a] / 2
        yearly = _RELAPSE_UNTREATED if a == 0 else _RELAPSE_TREATED
        for state, times in ((4, _EARLY_RELAPSE), (5, 1)):
            relapse = (1 - (1 - yearly) ** 0.25) * times
            row = transitions[state, a]
            row[6], row[1], row[5] = _LEAVES[a] / 2, stays * relapse, stays * (1 - relapse)
        quality[:4, a] = (_ILL_TREATED if a else _ILL_UNTREATED) - _BURDEN[a]
        quality[4:6, a] = _WELL - _BURDEN[a]
    transitions[6, :, 6] = 1
    quality[6] = _ILL_UNTREATED
    rewards = (quality - quality.min()) / (quality.max() - quality.min())
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="Treatment")
    return relabel_actions(mdp, relabel)


_APPEAL = np.array([[0.70, 0.55, 0.40], [0.40, 0.55, 0.70]])
_FATIGUE = 0.3
_LEAVES_LIKED, _LEAVES_DISLIKED = 0.03, 0.25


def Recommender(*, horizon: int = 8, relabel: int | None = None) -> TabularMDP:
    """Choose what to show next: repeats tire people, and who is bored leaves.

    Two tastes of equal share (known from the profile), three kinds of item. A state is the taste,
    the kind shown last and whether it was shown once or more often in a row; one more state per
    taste before the first item, and one for people who have left: 15 states. The action is the
    kind shown next; the reward is a like.

    From publications: 55% of the ratings in MovieLens-100K are likes (four stars or more), the
    average appeal here; appeal falls with each recent exposure to the same kind and recovers after
    a pause, as Warlop, Lazaric and Mary (2018), "Fighting Boredom in Recommender Systems with
    Linear Reinforcement Learning", found in MovieLens, and Leqi, Kilinc-Karzan, Lipton and
    Montgomery (2021), "Rebounding Bandits for Modeling Satiation Effects", model it.

    Stylised by us: the appeals 0.70, 0.55, 0.40 of the three kinds for the first taste (reversed
    for the second), a loss of 30% of the appeal per repeat (twice at most), and that 3% leave after
    a like but 25% after a dislike (likes and leaving are drawn independently of each other, with
    these rates).
    """
    _validate.count(horizon=horizon)
    transitions = np.zeros((15, 3, 15))
    rewards = np.zeros((15, 3))
    gone = 14
    for taste in range(2):
        first = 7 * taste
        for place in range(7):
            last, repeats = divmod(place - 1, 2) if place else (-1, -1)
            for kind in range(3):
                streak = repeats + 1 if kind == last else 0
                like = _APPEAL[taste, kind] * (1 - _FATIGUE) ** streak
                leaves = like * _LEAVES_LIKED + (1 - like) * _LEAVES_DISLIKED
                ahead = first + 1 + 2 * kind + min(streak, 1)
                transitions[first + place, kind, [gone, ahead]] = leaves, 1 - leaves
                rewards[first + place, kind] = like
    transitions[gone, :, gone] = 1
    initial = np.zeros(15)
    initial[[0, 7]] = 0.5
    mdp = TabularMDP(
        transitions=transitions,
        rewards=rewards,
        initial=initial,
        horizon=horizon,
        name="Recommender",
    )
    return relabel_actions(mdp, relabel)


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
    battery gives beyond the need is lost. Transitions are alike at all steps, rewards are not;
    beyond eight steps the next day follows.

    From publications: the first national time-of-use tariff in Great Britain (Green Energy UK,
    "Tide", 2017): 5 pence per kWh for seven night hours, 25 from 16 to 19 o'clock, 12 otherwise; a
    typical household's 3,100 kWh per year (Ofgem, typical domestic consumption values, 2013); a
    round-trip efficiency of 90%, the figure on current data sheets of home batteries.

    Stylised by us: the shape of the day (most at 16 to 22 o'clock), need 40% below or above it and
    persisting with probability 0.7, one kWh per step. The reward is 1 minus the cost of the step
    divided by the largest possible cost; it is not random given state and action.
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


def ICUSepsis(*, horizon: int = 20, relabel: int | None = None) -> TabularMDP:
    """Treat sepsis in intensive care: 716 states, 25 actions (extra `health`).

    Choudhary, Gupta and Thomas (2024), "ICU-Sepsis: A Benchmark MDP Built from Real Medical Data".
    An episode pays 1 if the patient survives within ``horizon`` steps of four hours. Actions that
    the records do not support in a state are not possible there: they are the authors' inadmissible
    actions, and ``mdp.allowed`` is the mask of all others.
    """
    from discreet.mdp.gymnasium import from_gymnasium

    # Importing the package registers its ids, and prints a notice about its old dependency.
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            import icu_sepsis  # noqa: F401
        except ImportError:
            raise MissingExtraError("icu-sepsis", "health") from None

    mdp = from_gymnasium("Sepsis/ICU-Sepsis-v2", horizon, name="ICU-Sepsis")
    return relabel_actions(mdp, relabel)
