"""Which modules a fresh process has loaded when it has run something."""

import subprocess
import sys


def loaded(code, modules):
    """Those of ``modules`` that are loaded after ``code``, which prints nothing."""
    script = f"{code}\nimport sys\nprint(*[name for name in {modules!r} if name in sys.modules])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()
