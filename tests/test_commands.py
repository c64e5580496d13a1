"""Commands of the soak tests and of research answer a call for help; nothing needs research."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [p for folder in ("tests/soak", "research") for p in sorted((ROOT / folder).glob("*.py"))]
NAMES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in FILES
    if '== "__main__"' in path.read_text("utf-8")
]
ASK_ALL = """
import runpy, sys
for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    sys.modules.pop(name, None)  # imported by another one
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        assert not end.code, name
"""


def test_every_command_answers_a_call_for_help(tmp_path):
    """All of them in one process and a folder of its own, which stays empty."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{ASK_ALL}"
    command = [sys.executable, "-c", code, *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", [])
    assert done.stdout.count("usage: ") >= len(NAMES) > 10


def test_nothing_imports_research():
    """What is delivered or measured stands without the workshop; its numbers have a test."""
    imported = re.compile(r"^\s*(?:from|import) research\b", re.MULTILINE)
    files = [f for part in ("src", "benchmarks", "tests") for f in (ROOT / part).rglob("*.py")]
    files.remove(ROOT / "tests" / "test_numbers.py")
    assert len(files) > 300
    assert not [f for f in files if imported.search(f.read_text("utf-8"))]
