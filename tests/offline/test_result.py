"""How a fit reads."""

import numpy as np
import pytest

from discreet.data import Vocabulary
from discreet.mdp.policies import DeferringPolicy
from discreet.offline.fit import Coverage, Fit
from discreet.privacy.guarantee import NO_GUARANTEE, Guarantee, said

pytestmark = pytest.mark.core

GUARANTEE = Guarantee(notion="JDP", epsilon=1.0, delta=1e-6)
NAMES = Vocabulary(states=["ill", "well"], actions=["wait", "treat"], steps=["first", "second"])


def fitted(actions=((1, -1), (-1, -1)), guarantee=GUARANTEE, pooled=None, gain=0.5, **others):
    behaviour = np.array([[True, True], [True, False]])
    known = np.array([[[True, True], [True, False]], [[True, True], [False, False]]])
    coverage = Coverage(
        visits=np.array([[60.0, 40], [90, 10]]),
        behaviour=behaviour,
        actions=known,
        other=0.25,
        pooled=pooled,
    )
    return Fit(
        policy=DeferringPolicy(np.array(actions)),
        lower_value=1.25,
        behaviour_value=1.0,
        behaviour_error=0.125,
        gain=gain,
        coverage=coverage,
        guarantee=guarantee,
        users=100,
        declared=np.ones((2, 2, 2), bool),
        width=2.0,
        **others,
    )


def test_the_whole_page():
    assert str(fitted(vocabulary=NAMES)).splitlines() == [
        "Fit on the logged episodes of 100 people",
        "  today           1.00 +- 0.13 per episode of 2 steps with rewards from 0 to 1 each, "
        "as logged (estimate and standard error)",
        "  this policy     better than today by 0.5 or more; it earns 1.25 or more: today's "
        "value less 2 standard errors, and the 0.5",
        "  changes         1 of 4 (step, state): 30% of all steps; elsewhere it DEFERs to today's "
        "behaviour",
        "  could not see   3 of 8 declared actions, and anything at all in 1 of 4 (step, state), "
        "5% of all steps",
        "  could compare   two actions or more in 75% of all steps",
        "  undeclared      25% of all steps took an action that was not declared",
        "  guarantee       SIMULATED, protects nobody: (1, 1e-06)-JDP, one user's whole episode, "
        "replace-one",
        "",
        "What to do at each step (. = DEFER; states left out always DEFER):",
        "state  first  second",
        "ill    treat  .",
    ]


def test_values_are_printed_in_the_units_of_the_table():
    found = fitted().in_units(300, 800)
    text = str(found)
    assert "1,100 +- 63 per episode of 2 steps with rewards from 300 to 800 each" in text
    assert "better than today by 250 or more; it earns 1225 or more" in text
    plain = found.to_dict()
    assert (plain["behaviour_value"], plain["gain"]) == (1.0, 0.5)
    assert plain["in_units"] == {
        "reward_range": [300.0, 800.0],
        "behaviour_value": 1100.0,
        "behaviour_error": 62.5,
        "lower_value": 1225.0,
        "gain": 250.0,
    }


def test_a_rehearsal_says_so_and_a_real_fit_does_not():
    assert "SIMULATED, protects nobody" in str(fitted())
    assert "SIMULATED" not in str(fitted(guarantee=GUARANTEE.stamped(secure=True)))
    assert fitted(guarantee=NO_GUARANTEE).to_dict()["guarantee"] == "no privacy"


def test_without_names_there_are_numbers():
    assert str(fitted()).endswith("state  0  1\n0      1  .")


def test_where_nothing_was_found_it_says_so():
    text = str(fitted(actions=((-1, -1), (-1, -1)), gain=0.0))
    assert text.endswith("these data cannot tell a better policy from today's.")
    assert "nothing better than today was found" in text


def test_a_declaration_of_stationarity_is_reported():
    assert "stationary" not in str(fitted())
    assert "80% of all rows were pooled" in str(fitted(pooled=0.8))
    assert "the data contradict it: nothing was pooled" in str(fitted(pooled=0.0))


def test_many_states_and_long_names_are_cut_short():
    many = fitted()
    wide = Fit(
        **{
            **many.__dict__,
            "policy": DeferringPolicy(np.ones((30, 60), int)),
            "declared": np.ones((30, 60, 2), bool),
            "coverage": Coverage(
                visits=np.ones((30, 60)),
                behaviour=np.ones((30, 60), bool),
                actions=np.ones((30, 60, 2), bool),
                other=0.0,
                pooled=None,
            ),
        }
    )
    lines = str(wide).splitlines()
    assert lines[-1] == "... and 20 more states; see policy.actions."
    assert max(map(len, lines[-42:])) <= 103


def test_coverage_is_by_people_not_by_cells():
    coverage = fitted().coverage
    assert coverage.share(np.array([[True, False], [False, False]])) == 0.3
    assert coverage.seen == 0.75


def test_rows_and_plain_values_say_what_the_table_says(tmp_path):
    found = fitted(vocabulary=NAMES)
    assert [row["action"] for row in found.rows()] == ["treat", "DEFER", "DEFER", "DEFER"]
    assert found.rows()[1] == {"step": "first", "state": "well", "action": "DEFER"}
    plain = found.to_dict()
    assert plain["guarantee"] == str(said(found.guarantee))
    assert plain["simulated"]
    assert plain["changed_steps"] == pytest.approx(0.3)
    found.save_policy(tmp_path / "policy.csv")
    lines = (tmp_path / "policy.csv").read_text().splitlines()
    assert lines[0] == "step,state,action,guarantee"
    assert all("SIMULATED, protects nobody" in line for line in lines[1:])
    assert fitted().names.actions == ("0", "1")
