"""The roster: one entry for each thing with a name, and a mechanism once for all its schedules."""

import json

import pytest

from discreet.cli import _roster
from discreet.errors import UnknownNameError
from discreet.learners.registry import learner_names
from discreet.privacy.mechanisms.registry import everything


def test_a_mechanism_is_one_line_with_all_its_schedules():
    found = {(one["trust"], one["name"]): one["schedules"] for one in _roster._mechanisms()}
    assert found["central", "gaussian"] == ["batch"]
    assert sorted(found["local", "laplace"]) == ["batch", "continual"]
    private = {(m.trust, m.name, m.schedule) for m in everything() if m.trust != "none"}
    assert {
        (*key, schedule) for key, schedules in found.items() for schedule in schedules
    } == private


def test_every_learner_says_what_it_takes():
    found = _roster._learners()
    assert [one["name"] for one in found] == learner_names()
    assert all(one["trust"] and one["summary"] and one["schedule"] for one in found)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"states": 4, "relabel": None}, "states=4, relabel=None"),
        (["batch", "continual"], "batch, continual"),
        ("plain", "plain"),
        (3, "3"),
    ],
)
def test_values_as_a_person_reads_them(value, text):
    assert _roster._text(value) == text


def test_one_section_or_all(capsys):
    _roster.show("experiments", as_json=True)
    assert list(json.loads(capsys.readouterr().out)) == ["experiments"]
    with pytest.raises(UnknownNameError, match="did you mean 'mechanisms'"):
        _roster.show("mechanism", as_json=True)
