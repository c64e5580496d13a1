"""Treatment: sequential care for depression, with numbers from published trials."""

import numpy as np

from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP

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

    Args:
        horizon: quarters per episode.
        relabel: a seed to rename the actions at random in each state.
    """
    transitions = np.zeros((7, 3, 7))
    quality = np.zeros((7, 3))
    for a in range(3):
        for attempt in range(4):
            _ill_row(transitions[attempt, a], attempt, a)
        for new, state in ((True, 4), (False, 5)):
            _well_row(transitions[state, a], new, a)
        quality[:4, a] = (_ILL_TREATED if a else _ILL_UNTREATED) - _BURDEN[a]
        quality[4:6, a] = _WELL - _BURDEN[a]
    transitions[6, :, 6] = 1
    quality[6] = _ILL_UNTREATED
    rewards = (quality - quality.min()) / (quality.max() - quality.min())
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="Treatment")
    return relabel_actions(mdp, relabel)


def _remission(attempt: int, action: int) -> float:
    """Probability of remission within a quarter."""
    one_drug = _REMISSION_ONE_DRUG[attempt]
    if action == 0:
        return _REMISSION_UNTREATED * one_drug / _REMISSION_ONE_DRUG[0]
    if action == 1:
        return one_drug
    odds = _COMBINATION_ODDS * one_drug / (1 - one_drug)
    return odds / (1 + odds)


def _ill_row(row: np.ndarray, attempt: int, action: int) -> None:
    stays = 1 - _LEAVES[action]
    well = stays * _remission(attempt, action)
    row[6] = _LEAVES[action]
    row[4] = well
    row[attempt if action == 0 else min(attempt + 1, 3)] += stays - well


def _well_row(row: np.ndarray, new: bool, action: int) -> None:
    yearly = _RELAPSE_UNTREATED if action == 0 else _RELAPSE_TREATED
    relapse = (1 - (1 - yearly) ** 0.25) * (_EARLY_RELAPSE if new else 1)
    stays = 1 - _LEAVES[action] / 2
    row[6] = _LEAVES[action] / 2
    row[1] = stays * relapse
    row[5] = stays * (1 - relapse)
