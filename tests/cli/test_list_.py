"""`discreet list`: everything that has a name."""

import json

from discreet.cli import list_
from discreet.learners.registry import learner_names
from discreet.privacy.mechanisms.registry import everything


def test_list_names_everything(discreet):
    _, out, _ = discreet("list", "--json")
    found = json.loads(out)
    names = [entry["name"] for entry in found["environments"]]
    assert {"RiverSwim", "ICU-Sepsis"} <= set(names)
    assert list(found) == ["environments", "learners", "mechanisms", "experiments", "papers"]
    assert all(entry["summary"] for entries in found.values() for entry in entries)
    code, out, _ = discreet("list")
    assert code == 0
    for word in ("Environments", "RiverSwim", "Learners", "Mechanisms", "Experiments", "Papers"):
        assert word in out


def test_list_skips_empty_sections(discreet, monkeypatch):
    monkeypatch.setattr(list_, "_experiments", list)
    _, out, _ = discreet("list")
    assert "Experiments" not in out


def test_one_section_of_the_list(discreet):
    _, out, _ = discreet("list", "mechanisms", "--json")
    found = json.loads(out)
    assert list(found) == ["mechanisms"]
    assert {entry["trust"] for entry in found["mechanisms"]} == {"central", "local", "shuffle"}
    code, _, err = discreet("list", "learner")
    assert code == 2
    assert "did you mean 'learners'" in err


def test_values_are_words(discreet):
    _, out, _ = discreet("list", "environments")
    assert "states=4, horizon=6, relabel=None" in " ".join(out.split())


def test_every_mechanism_is_listed_once_per_trust_model(discreet):
    entries = json.loads(discreet("list", "mechanisms", "--json")[1])["mechanisms"]
    pairs = [(entry["trust"], entry["name"]) for entry in entries]
    assert len(pairs) == len(set(pairs))
    assert {tuple(entry["schedules"]) for entry in entries} == {("batch",), ("continual",)}


def test_a_mechanism_has_all_its_schedules(discreet):
    entries = json.loads(discreet("list", "mechanisms", "--json")[1])["mechanisms"]
    found = {(e["trust"], e["name"], s) for e in entries for s in e["schedules"]}
    assert found == {(m.trust, m.name, m.schedule) for m in everything() if m.trust != "none"}


def test_every_learner_says_what_it_takes(discreet):
    found = json.loads(discreet("list", "learners", "--json")[1])["learners"]
    assert [one["name"] for one in found] == learner_names()
    assert all(one["trust"] and one["summary"] and one["schedule"] for one in found)


def test_there_is_one_section_at_most(discreet):
    assert discreet("list", "learners", "--import", "json") == discreet("list", "learners")
    assert discreet("list", "learners", "flow-ucb")[0] == 2


def test_papers_say_what_they_deliver(discreet):
    code, out, _ = discreet("list", "papers", "--json")
    assert code == 0
    entries = {entry["name"]: entry for entry in json.loads(out)["papers"]}
    assert entries["003-ldp"]["delivers"]["epsilon"] == 2.0
    known = {"epsilon": 0.07288, "delta": 1e-5, "why": "", "refuted_from": 23_813}
    assert entries["001"]["delivers"] | {"why": ""} == known
    assert entries["001"]["delivers_if_only_sums_are_seen"]["epsilon"] < 0.05
    assert "delivers_if_only_sums_are_seen" not in entries["002"]
    code, out, _ = discreet("list", "papers")
    assert code == 0
    assert "004-bandit-ldp" in out and "0.07288, 1e-05" in out
