"""A learner never draws noise and never sees a raw count: what its modules may import and name."""

import ast
from pathlib import Path

import pytest

import discreet.learners

pytestmark = pytest.mark.core

HOME = Path(discreet.learners.__file__).parent
FAMILIES = ("adversarial", "elimination", "flow_ucb", "streams")
FILES = sorted(path for family in FAMILIES for path in (HOME / family).glob("*.py"))
FORBIDDEN_MODULES = (
    "discreet.mdp.counts",
    "discreet.mdp.simulation",
    "discreet.mdp.trajectories",
    "discreet.privacy.mechanisms",
    "discreet.privacy.sampling",
)
"""Samplers, mechanisms and what holds raw counts."""
FORBIDDEN_IMPORTS = {
    "discreet.privacy.streams.lane_kernels": {"add_laplace", "draw_table"},
    "discreet.privacy.streams.lanes": {"lane_noise"},
    "discreet.privacy.streams.simulation": {"play_episode"},
}
RAW = {"raw", "randomness", "noise_block", "fresh", "path"}
"""What a kernel of users holds for the release alone."""


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def broken_rules(text):
    tree = ast.parse(text)
    for module, name in imports(tree):
        whole = f"{module}.{name}"
        for forbidden in FORBIDDEN_MODULES:
            if whole == forbidden or whole.startswith(forbidden + "."):
                yield f"imports {whole}"
        if name in FORBIDDEN_IMPORTS.get(module, ()):
            yield f"imports {name} from {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in RAW:
            yield f"names .{node.attr} in line {node.lineno}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_learner_draws_no_noise_and_sees_no_raw_count(path):
    assert list(broken_rules(path.read_text())) == []


@pytest.mark.parametrize(
    "text",
    [
        "from discreet.privacy.sampling.samplers import SimulationSampler",
        "from discreet.privacy import sampling",
        "import discreet.mdp.simulation",
        "from discreet.privacy.mechanisms._laws import LaplaceLaw",
        "from discreet.privacy.streams.lane_kernels import add_laplace",
        "def cheat(users):\n    return users.raw.visits",
    ],
)
def test_the_rules_notice(text):
    assert list(broken_rules(text))


def test_there_are_files_to_check():
    assert {path.parent.name for path in FILES} == set(FAMILIES)
    assert len(FILES) > 30
