"""What the commands of a study share: facts in plain values, the promise beside every answer."""

import json

import pytest

from discreet.cli.study import _shared
from discreet.errors import StudyError


def test_facts_are_plain_and_say_that_a_rehearsal_protects_nobody(rehearsed):
    study = _shared.opened(rehearsed / "study.db", None, to_read=True)
    facts = _shared.facts_of(study)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["simulated"] is True
    assert (facts["users"], facts["batches"], facts["finished"]) == (0, 0, False)
    assert facts["next_batch"] == study.batch_size
    assert facts["head"] == study.head
    assert facts["value"]["low"] <= facts["value"]["estimate"] <= facts["value"]["high"]


def test_a_look_changes_nothing_and_an_older_head_is_refused(rehearsed):
    path = rehearsed / "study.db"
    before = path.read_bytes()
    for to_read in (True, False):
        with pytest.raises(StudyError):
            _shared.opened(path, "00" * 32, to_read=to_read)
    _shared.opened(path, None, to_read=True)
    assert path.read_bytes() == before


def test_an_answer_is_json_or_a_table(capsys):
    plain, rows = {"users": 3}, [("users", "three of them")]
    _shared.answer(plain, "Facts", rows, json=True)
    assert json.loads(capsys.readouterr().out) == plain
    _shared.answer(plain, "Facts", rows, json=False)
    assert "three of them" in capsys.readouterr().out


def test_the_promise_stands_below_a_policy(rehearsed, capsys):
    study = _shared.opened(rehearsed / "study.db", None, to_read=True)
    _shared.policy_table("Policy", study, [{"step": 0, "seen": True, "share": 0.25}])
    shown = " ".join(capsys.readouterr().out.split())
    assert "yes" in shown and "0.25" in shown
    assert str(study.guarantee).split("(")[0].strip()[:12] in shown
