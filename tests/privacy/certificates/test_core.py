"""The trusted core: the page lists it, and it imports nothing of ours beside the list."""

import ast
import re
from pathlib import Path

import discreet

ROOT = Path(discreet.__file__).parent
PAGE = Path(__file__).parents[3] / "docs/understand/certificates.md"
PLAIN = {"_types", "_validate", "errors", "mdp.shape", "mdp._arrays"}
"""Types, checked arguments, errors and sizes."""
CHOICES = ("privacy.accounting", "privacy.sensitivity", "privacy.mechanisms.registry")
"""What finds noise and names it: a wrong choice has no proof."""
COMPILED = {"privacy.mechanisms._kernels"}
"""Sums over the time of a stream: no batch runs them."""


def listed():
    section = PAGE.read_text("utf-8").split("## What one has to read")[1].split("\n## ")[0]
    blocks = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    return [block.split() for block in blocks]


def imported(path):
    """Modules of ours that a file needs when it runs, also late."""

    def statements(nodes):
        for node in nodes:
            if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
                yield node
                yield from statements(ast.iter_child_nodes(node))

    for node in statements(ast.parse(path.read_text("utf-8")).body):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("discreet"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet"):
            for name in node.names:
                inner = f"{node.module}.{name.name}".removeprefix("discreet.")
                there = (ROOT / f"{inner.replace('.', '/')}.py").exists()
                yield inner if there else node.module.removeprefix("discreet.")


def strangers(files):
    known = {name.removesuffix(".py").replace("/", ".") for name in files}
    return sorted(
        f"{name} imports {module}"
        for name in files
        for module in set(imported(ROOT / name)) - known - PLAIN - COMPILED
        if not module.startswith(CHOICES)
    )


def test_the_trusted_core_imports_nothing_beside_itself():
    batch, messages = listed()
    assert strangers(batch) == []
    assert strangers(batch + messages) == []


def test_the_core_is_what_it_says():
    """A file less, and somebody imports what is missing."""
    batch, messages = listed()
    for missing in ("mdp/counts.py", "privacy/mechanisms/base.py", "privacy/statistics.py"):
        assert strangers([name for name in batch if name != missing])
    assert strangers([name for name in batch + messages if name != "device/draws.py"])
    assert list(imported(ROOT / "privacy/certificates/verify.py")) == []
