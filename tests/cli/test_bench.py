"""`discreet bench`: only in a clone, ratios as the benchmarks state them."""

import json
import sys


def test_bench_needs_a_clone(discreet, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, err = discreet("bench", "--quick")
    assert code == 2
    assert "in a clone" in err


def test_bench_reports_ratios(discreet, monkeypatch, tmp_path):
    row = {
        "task": "t", "ours": 1.0, "peer": 4.0, "unit": "ms", "ratio": 4.0, "low": 3.9, "high": 4.2,
        "clock": "processor", "peer_name": "p", "peer_version": "1.2", "peer_is": "original",
        "note": "twice as long",
    }  # fmt: skip
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text(
        f"def run_all(quick, only):\n    return [{row!r}]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "benchmarks", raising=False)
    assert json.loads(discreet("bench", "--json")[1]) == {"results": [row]}
    table = discreet("bench")[1]
    assert "3.90 to 4.20" in table and "p 1.2 (original)" in table
    assert "t: twice as long" in table
    del sys.modules["benchmarks"]  # the one before comes back by itself
