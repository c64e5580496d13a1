"""Which modules a fresh process has loaded when it has run something."""

import ast
import subprocess
import sys
from pathlib import Path


def loaded(code, modules):
    """Those of ``modules`` that are loaded after ``code``, which prints nothing."""
    script = f"{code}\nimport sys\nprint(*[name for name in {modules!r} if name in sys.modules])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def homes(package):
    """Public name -> module, as the stub of a lazy package says it."""
    stub = ast.parse(Path(package.__path__[0], "__init__.pyi").read_text("utf-8"))
    nodes = [node for node in ast.walk(stub) if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in nodes for alias in node.names}
