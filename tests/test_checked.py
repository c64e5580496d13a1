"""What a check found is well, or has problems, whatever was checked."""

import pytest

from discreet._types import Checked
from discreet.learners.check import LearnerReport
from discreet.mdp import RiverSwim
from discreet.mdp.check import check_mdp
from discreet.privacy.auditing.conformance import Conformance
from discreet.study.check import StudyReport


@pytest.mark.parametrize(
    "make",
    [
        lambda problems: LearnerReport("mine", (), problems, {}),
        lambda problems: Conformance("mine", problems),
        lambda problems: StudyReport("mine", problems),
    ],
    ids=["learner", "mechanism", "study"],
)
def test_what_has_a_problem_is_not_ok(make):
    assert isinstance(make(()), Checked)
    assert make(()).ok
    assert not make(("It forgets its users.",)).ok


def test_a_model_is_judged_the_same_way():
    assert check_mdp(RiverSwim(states=3, horizon=4)).ok
    assert not check_mdp(RiverSwim(states=3, horizon=1)).ok
