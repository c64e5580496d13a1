"""From a raw table to a dossier, as a new user goes: design, check, mend, fit, study, report.

The table has the defects of Project STAR's and of a spreadsheet's: people who come late, stay away
or leave, words for missing values, decimal commas, a line for Excel, a row that stands there twice.
"""

import json
import zipfile

import numpy as np
import pytest

PEOPLE = 300
LATE = range(0, PEOPLE, 3)
LEFT = range(0, PEOPLE, 5)
AWAY = set(range(1, PEOPLE, 7)) - set(LATE) - set(LEFT)
HEADER = "Pupil;Grade;Lunch;Class;Score"
MENDED = """
clip_rewards = true
decimal = ","
missing = ["n/a"]
missing_state = "unknown"
missing_reward = 50
late = {state = "not yet", reward = 50}
gap = {state = "away", reward = 50}
padding = {end = "gone", reward = 50}
"""
ALLOWED = """
[[allowed]]
states = ["not yet", "away", "gone"]
actions = ["regular"]
"""


def rows_of(rng):
    """Three grades of each pupil, some of them missing."""
    for i in range(PEOPLE):
        first, left = int(i in LATE), 2 if i in LEFT else 3
        for grade in range(first, left):
            if grade == 1 and i in AWAY:
                continue
            lunch = "n/a" if i % 11 == 2 else rng.choice(["free", "paid"])
            score = "n/a" if i % 13 == 3 else f"{rng.uniform(20, 90):.1f}".replace(".", ",")
            yield f"p{i};{grade};{lunch};{rng.choice(['regular', 'small'])};{score}"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = list(rows_of(np.random.default_rng(0)))
    text = "\n".join(["sep=;", HEADER, *rows]) + "\n"
    path = tmp_path / "pupils.csv"
    path.write_text(text, encoding="utf-8-sig")
    return path


def test_from_a_raw_table_to_a_dossier(table, tmp_path, discreet):
    twice = table.read_text("utf-8-sig").splitlines()[-1]
    with table.open("a", encoding="utf-8") as file:
        file.write(f"{twice}\n")
    code, _, _ = discreet(
        "design", "pupils.csv", "--column", "state=lunch", "--column", "action=class",
        "--states", "free,paid,unknown,not yet,away,gone", "--actions", "regular,small",
        "--steps", "3", "--reward-range", "0,80",
    )  # fmt: skip
    assert code == 0
    check = ("check", "table", "pupils.csv", "--design", "design.toml", "--json")
    code, out, _ = discreet(*check)
    found = {problem["kind"]: problem["count"] for problem in json.loads(out)["problems"]}
    assert code == 1
    assert set(found) == {
        "word for a missing value",
        "decimal comma in 'Score'",
        "reward out of range in 'Score'",
        "no state in 'lunch'",
        "no reward",
        "step more than once",
        "person who comes late",
        "gap between steps",
        "episode that ended early",
    }
    assert found["step more than once"] == 1
    assert found["person who comes late"] == len(LATE)
    assert found["gap between steps"] == len(AWAY)
    assert found["episode that ended early"] == len(LEFT)

    design = tmp_path / "design.toml"
    text = design.read_text().replace("[table]\n", f"[table]{MENDED}")
    text = text.replace("# episodes = 3000", f"episodes = {PEOPLE}")
    design.write_text(
        text.replace("[trust]\n", f'{ALLOWED}\n[settings]\naim = "policy"\n\n[trust]\n')
    )
    code, out, _ = discreet(*check)
    assert code == 1  # what no rule can mend is mended in the table
    assert [problem["kind"] for problem in json.loads(out)["problems"]] == ["step more than once"]
    table.write_text("\n".join(table.read_text("utf-8-sig").splitlines()[:-1]) + "\n")
    code, out, _ = discreet(*check)
    assert code == 0 and json.loads(out)["people"] == PEOPLE

    rehearse = ("--design", "design.toml", "--rehearse", "--seed", "1")
    code, out, _ = discreet("fit", "pupils.csv", *rehearse)
    assert code == 0 and f"the logged episodes of {PEOPLE} people" in out
    assert "per episode of 3 steps with rewards from 0 to 80 each" in out
    assert discreet("study", "start", "study.db", *rehearse)[0] == 0
    code, out, _ = discreet("study", "tell", "study.db", "pupils.csv", "--json")
    assert code == 0 and json.loads(out)["counted"] == PEOPLE
    assert discreet("study", "bundle", "study.db", "--output", "review.zip")[0] == 0
    with zipfile.ZipFile(tmp_path / "review.zip") as archive:
        page = archive.read("dossier.html").decode()
    assert "not yet" in page and "rewards from" in page
    assert discreet("study", "verify", "study.db")[0] == 0


DAYS = 3
STEPS_DESIGN = """
episodes = 240
states = ["sitting", "walking", "unavailable", "off"]
actions = ["nothing", "suggest"]
steps = ["morning", "noon", "evening"]
learner = "trial"

[[allowed]]
states = ["unavailable", "off"]
actions = ["nothing"]

[settings]
aim = "policy"

[trust]
model = "central"
epsilon = 1.0
delta = 1e-6
participations = 3

[table]
columns = {user = "person", episode = "day", step = "time", reward = "walked"}
reward_range = [0, 500]
clip_rewards = true
late = {state = "off"}
gap = {state = "off"}
padding = {end = "off"}
"""


def days_of(rng, days):
    """Eighty people with phones that are off now and then; who drives is not available."""
    for person in range(80):
        for day in days:
            for time in ("morning", "noon", "evening"):
                state = rng.choice(["sitting", "walking", "unavailable", "off"])
                if state != "off" or time == "noon":
                    state = "sitting" if state == "off" else state
                    action = (
                        "nothing" if state == "unavailable" else rng.choice(["nothing", "suggest"])
                    )
                    yield f"p{person},{day},{time},{state},{action},{rng.uniform(0, 600):.0f}"


def write_days(path, days):
    rows = days_of(np.random.default_rng(len(days)), days)
    path.write_text("\n".join(["person,day,time,state,action,walked", *rows]) + "\n")


def test_days_of_the_same_people_with_a_mask(tmp_path, monkeypatch, discreet):
    """As in a trial of phones: several days of a person, who cannot always be asked."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "design.toml").write_text(STEPS_DESIGN)
    write_days(tmp_path / "days.csv", range(DAYS))
    check = ("check", "table", "days.csv", "--design", "design.toml", "--json")
    code, out, _ = discreet(*check)
    assert code == 0 and json.loads(out)["people"] == 80
    rehearse = ("--design", "design.toml", "--rehearse", "--seed", "1")
    code, out, _ = discreet("fit", "days.csv", *rehearse, "--json")
    found = json.loads(out)
    assert code == 0 and "one person, up to 3 episodes" in found["guarantee"]
    masked = {row["action"] for row in found["policy"] if row["state"] in ("unavailable", "off")}
    assert masked <= {"DEFER", "nothing"}
    assert discreet("study", "start", "study.db", *rehearse)[0] == 0
    code, out, _ = discreet("study", "ask", "study.db", "--json")
    offered = {(row["state"], row["action"]) for row in json.loads(out)["policy"]}
    assert ("sitting", "suggest") in offered
    assert {action for state, action in offered if state == "unavailable"} == {"nothing"}
    write_days(tmp_path / "monday.csv", [0])
    code, out, _ = discreet("study", "tell", "study.db", "monday.csv", "--json")
    assert code == 0 and json.loads(out)["counted"] == 80
    text = (
        (tmp_path / "days.csv")
        .read_text()
        .replace(",unavailable,nothing,", ",unavailable,suggest,")
    )
    (tmp_path / "days.csv").write_text(text)
    code, out, _ = discreet(*check)
    assert code == 1
    assert [p["kind"] for p in json.loads(out)["problems"]] == ["action that is not allowed there"]
