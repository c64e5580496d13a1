"""`discreet study verify`: whole, edited, older."""

import json

from helpers.studies import sql
from helpers.study_commands import resumed


def test_a_whole_file(rehearsed, run, discreet):
    head = resumed(rehearsed).head
    assert run("verify", "study.db", "--head", head)["verified"]
    code, out, _ = discreet("study", "verify", "study.db")
    assert code == 0
    assert "every row matches the chain of hashes" in out
    assert "give the --head that you noted" in out


def test_an_edited_or_older_one(rehearsed, discreet):
    code, out, err = discreet("study", "verify", "study.db", "--head", "0" * 64)
    assert (code, out) == (2, "")
    assert "an older copy or another study" in err
    sql(rehearsed / "study.db", "UPDATE config SET config = replace(config, '1.0', '9.0')")
    code, out, err = discreet("study", "verify", "study.db", "--json")
    assert (code, err) == (2, "")
    assert "was edited or damaged" in json.loads(out)["error"]
