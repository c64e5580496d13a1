"""`discreet study policy`: printed, saved, as JSON."""

import json

from discreet.privacy.guarantee import REHEARSED
from helpers.study_commands import resumed, write_table


def test_the_policy_is_the_studys(rehearsed, run, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed))
    run("tell", "study.db", "week.csv")
    study = resumed(rehearsed)
    found = run("policy", "study.db", "--output", "policy.json")
    chosen = [study.names.actions[a] for a in study.policy.actions.ravel()]
    assert [row["action"] for row in found["policy"]] == chosen
    assert json.loads((rehearsed / "policy.json").read_text())["policy"] == found["policy"]
    assert found["simulated"]
    code, out, _ = discreet("study", "policy", "study.db")
    assert code == 0
    assert REHEARSED in out
    assert "better" in out


def test_where_it_was_written(rehearsed, discreet):
    code, out, _ = discreet("study", "policy", "study.db", "--output", "policy.csv")
    assert code == 0
    assert out.startswith("policy.csv: worth")
    assert REHEARSED in out
    code, _, err = discreet("study", "policy", "study.db", "--output", "policy.txt")
    assert code == 2
    assert "ends in .json or .csv" in err
