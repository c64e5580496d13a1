"""Treatment carries the published numbers it quotes."""

import pytest

from discreet.mdp import make, plan

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
    first = plan(TREATMENT).policy.actions
    assert (first[0, :4] > 0).all()
    assert first[-1, 5] == 0
