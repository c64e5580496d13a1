"""`discreet service verify`: the charter alone, and what a ledger needs besides."""

import json


def test_a_charter_proves_its_promise(discreet, folder):
    code, out, _ = discreet("service", "verify", str(folder / "charter.json"), "--json")
    assert code == 0 and 0 < json.loads(out)["delta_proven"] <= 1e-4


def test_a_ledger_alone_is_not_enough(discreet, folder):
    words = (str(folder / "charter.json"), "--study", str(folder / "analyser" / "study.db"))
    code, _, err = discreet("service", "verify", *words)
    assert code == 2 and "give --manifests too" in err
