"""`discreet study ask`: the question as a table, as files, as JSON."""

import csv
import json

from discreet.device import load
from discreet.privacy.guarantee import REHEARSED
from helpers.study_commands import resumed


def test_the_question_is_the_studys(rehearsed, run):
    asked, study = run("ask", "study.db"), resumed(rehearsed)
    assert (asked["users"], asked["token"]) == (study.batch_size, study.token)
    assert len(asked["policy"]) == 12
    first = asked["policy"][0]
    assert (first["step"], first["state"]) == ("1", "ill")
    assert first["action"] == study.names.actions[study.ask().actions[0, 0]]
    assert asked["guarantee"].startswith(REHEARSED)
    assert asked["encoder"] is None
    assert run("ask", "study.db") == asked


def test_it_is_written_with_its_promise(rehearsed, discreet):
    code, out, _ = discreet("study", "ask", "study.db", "--policy", "week.csv")
    assert code == 0
    assert REHEARSED in out
    with (rehearsed / "week.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert all(REHEARSED in row["guarantee"] for row in rows)
    discreet("study", "ask", "study.db", "--policy", "week.json")
    saved = json.loads((rehearsed / "week.json").read_text())
    assert saved["simulated"]
    assert saved["token"] == resumed(rehearsed).token
    assert len(saved["policy"]) == 12


def test_devices_get_their_description(place, run):
    run("start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--rehearse")
    asked = run("ask", "study.db", "--encoder", "encoder.json")
    described = json.loads((place / "encoder.json").read_text())
    assert described == asked["encoder"]
    assert load(described).batch == load(resumed(place).encoder().to_dict()).batch


def test_a_central_study_has_no_encoder_and_nothing_is_written(rehearsed, discreet):
    code, _, err = discreet(
        "study", "ask", "study.db", "--policy", "p.csv", "--encoder", "encoder.json"
    )
    assert code == 2
    assert "need no encoder" in err
    assert sorted(p.name for p in rehearsed.iterdir()) == ["design.toml", "study.db"]


def test_a_table_for_people(rehearsed, discreet):
    code, out, _ = discreet("study", "ask", "study.db")
    assert code == 0
    assert "better" in out
    assert "at each step, take the action of the state" in out
    assert REHEARSED in out


def test_a_mechanism_without_code_for_phones_says_so(place, discreet):
    options = ("--design", "design.toml", "--trust", "local", "--rehearse")
    for file, mechanism, said in (("a.db", "laplace", True), ("b.db", "one-step", False)):
        discreet("study", "start", file, *options, "--mechanism", mechanism)
        code, out, _ = discreet("study", "ask", file, "--encoder", "encoder.json")
        assert code == 0
        assert ("needs the whole library" in out) == said
        assert ('"one-step" or "randomized-response"' in out) == said


def test_phones_under_shuffle_are_sent_to_a_mechanism_of_shuffle(place, discreet):
    options = ("--design", "design.toml", "--trust", "shuffle", "--rehearse")
    discreet("study", "start", "a.db", *options, "--mechanism", "bits")
    code, out, _ = discreet("study", "ask", "a.db", "--encoder", "encoder.json")
    assert code == 0
    assert 'choose mechanism = "classes" in' in " ".join(out.split())
