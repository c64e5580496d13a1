"""The scripts in examples/ run as they are and print what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "compare_trust_models.py": "(1, 1e-06)-SDP",
    "from_gymnasium.py": "best policy:   0.199",
    "quickstart.py": "(1, 1e-06)-SDP, one user's whole episode, replace-one",
    "real_study.py": "2000 users in",
}


def test_every_example_is_tested():
    assert {script.name for script in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("script", SAYS)
def test_example_runs(script, tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLES / script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert SAYS[script] in done.stdout
