"""Plain values: their types load without NumPy, and so does what only speaks of them."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    "module", ["discreet._plain", "discreet._sources", "discreet.cli.study._shared"]
)
def test_no_arrays_are_loaded_for_words(module):
    script = f"import sys, {module}; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
