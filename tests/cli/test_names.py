"""Completion: names that begin so, in any spelling, and only those."""

import pytest

from discreet.cli import _names


@pytest.mark.parametrize(
    ("complete", "begun", "found"),
    [
        (_names.learners, "flow", ["flow-ucb"]),
        (_names.learners, "PRIVATE-ucb-p", ["private-ucb-po"]),
        (_names.environments, "river", ["RiverSwim"]),
        (_names.environments, "icu", ["ICU-Sepsis"]),
        (_names.experiments, "shuffle-r", ["shuffle-riverswim"]),
        (_names.trusts, "", ["none", "central", "local", "shuffle"]),
        (_names.trusts, "Sh", ["shuffle"]),
        (_names.trusts, "huffle", []),
    ],
)
def test_what_begins_so_is_offered(complete, begun, found):
    assert complete(begun) == found


def test_everything_that_is_offered_can_be_asked_for():
    from discreet.learners.registry import get_learner

    names = _names.learners("")
    assert len(names) > 10
    assert [get_learner(name).name for name in names] == names
