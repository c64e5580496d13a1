"""`discreet study close`: the end is in the ledger, and nothing more is counted."""

from helpers.study_commands import resumed, write_table


def test_an_end_before_all_came(rehearsed, run, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed))
    closed = run("close", "study.db")
    assert closed["finished"]
    assert closed["next_batch"] is None
    assert resumed(rehearsed).ledger[-1]["kind"] == "close"
    code, _, err = discreet("study", "tell", "study.db", "week.csv")
    assert code == 2
    assert "was closed" in err
    code, out, _ = discreet("study", "close", "study.db")
    assert code == 0
    assert "is closed" in out
    assert resumed(rehearsed).head == closed["head"]
