"""Every command under tools says what it does, started in the one way there is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in ROOT.glob("tools/[!_]*.py"))

ASK_ALL = """
import contextlib, io, json, runpy, sys
said = {}
for name in sys.argv[1:]:
    sys.argv, text = [name, "--help"], io.StringIO()
    sys.modules.pop(f"tools.{name}", None)  # imported by another one
    try:
        with contextlib.redirect_stdout(text):
            runpy.run_module(f"tools.{name}", run_name="__main__", alter_sys=True)
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
def test_a_tool_answers_a_call_for_help(said, name):
    code, text = said[name]
    assert code in (0, None)
    assert text.startswith("usage: ")
    assert len(text.splitlines()) > 3


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_says_how_it_is_started(name):
    text = (ROOT / "tools" / f"{name}.py").read_text("utf-8")
    about = text.split('"""')[1]
    assert f"python -m tools.{name}" in about and "python tools/" not in text
