"""`discreet study show`: facts and ledger."""

from discreet.privacy.guarantee import REHEARSED
from helpers.study_commands import resumed, write_table


def test_facts_and_every_entry(rehearsed, run, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed), users=6)
    run("tell", "study.db", "week.csv")
    shown, study = run("show", "study.db"), resumed(rehearsed)
    assert [entry["kind"] for entry in shown["ledger"]] == ["start", "batch"]
    assert shown["ledger"] == study.ledger
    assert (shown["users"], shown["batches"], shown["finished"]) == (6, 1, False)
    assert shown["value"]["estimate"] == study.value.value
    code, out, _ = discreet("study", "show", "study.db")
    assert code == 0
    assert out.count(REHEARSED) == 2  # in both tables
    assert study.head in out


def test_a_long_ledger_is_cut_and_says_so(rehearsed, run, discreet):
    study = resumed(rehearsed)
    for _ in range(45):
        study.reissue()
    code, out, _ = discreet("study", "show", "study.db")
    assert code == 0
    assert "last 40 of 46" in out
    assert len(run("show", "study.db")["ledger"]) == 46


def test_reading_changes_nothing(rehearsed, run):
    before = (rehearsed / "study.db").read_bytes()
    for command in ("show", "policy", "verify", "ask"):
        run(command, "study.db")
    assert (rehearsed / "study.db").read_bytes() == before
