"""Every command of the soak tests and of research says what it does; nothing needs research."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [p for folder in ("tests/soak", "research") for p in sorted((ROOT / folder).glob("*.py"))]
COMMANDS = [path.relative_to(ROOT) for path in FILES if '== "__main__"' in path.read_text()]
NAMES = [".".join(path.with_suffix("").parts) for path in COMMANDS]

ASK_ALL = """
import contextlib, io, json, runpy, sys
said = {}
for name in sys.argv[1:]:
    sys.argv, text = [name, "--help"], io.StringIO()
    sys.modules.pop(name, None)  # imported by another one
    try:
        with contextlib.redirect_stdout(text):
            runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        said[name] = [end.code, text.getvalue()]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What all of them answer to ``--help``, in one process and a folder of its own."""
    folder = tmp_path_factory.mktemp("asked")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{ASK_ALL}"
    command = [sys.executable, "-c", code, *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=900)
    assert (done.returncode, done.stderr, list(folder.iterdir())) == (0, "", [])
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_a_command_answers_a_call_for_help(said, name):
    code, text = said[name]
    assert code in (0, None)
    assert text.startswith("usage: ")
    assert len(text.splitlines()) > 3


@pytest.mark.parametrize("name", NAMES)
def test_a_command_says_how_it_is_started(name):
    text = (ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8")
    assert f"python -m {name}" in text.split('"""')[1]


def test_nothing_imports_research():
    """What is delivered or measured stands without the workshop; its numbers have a test."""
    imported = re.compile(r"^\s*(?:from|import) research\b", re.MULTILINE)
    files = [f for part in ("src", "benchmarks", "tests") for f in (ROOT / part).rglob("*.py")]
    files.remove(ROOT / "tests" / "test_numbers.py")
    assert len(files) > 300
    assert not [f for f in files if imported.search(f.read_text("utf-8"))]
