"""A learner never draws noise and never sees a raw count: what its modules name.

What they import is a contract of import-linter (pyproject.toml); what they do, `check_learner`
watches.
"""

import ast
import tomllib
from pathlib import Path

import numpy as np
import pytest

import discreet

pytestmark = pytest.mark.core

PACKAGE = Path(discreet.__file__).parent
RUNNERS = {"__init__.py", "check.py", "learn.py", "registry.py", "values.py"}
"""Of the framework: no learner is in them, they simulate people or value what was released."""
FILES = sorted(p for p in (PACKAGE / "learners").rglob("*.py") if p.name not in RUNNERS) + [
    PACKAGE / "adversarial" / f"{name}.py"
    for name in ("barrier", "entropy", "learner", "occupancy", "uc_o_reps", "uob_lbps")
]
RAW = {"raw", "randomness", "noise_block", "fresh", "path"}
"""What a kernel of users holds for the release alone."""
RELEASES = {"simulate", "release", "release_reports", "open", "encoder", "draw", "drawn", "scatter"}
"""What a mechanism, noise or a sampler does with raw counts or with noise."""
LUCK = {"random", "integers", "choice", "permuted", "bit_generator"}
"""What a learner may ask of its generator: ties, a choice among policies, seeds."""
LAWS = {name for name in vars(np.random.Generator) if not name.startswith("_")} - LUCK
"""Distributions of generators, which could serve as noise."""
POSTERIOR = {"psrl.py", "trial.py"}
"""Posterior sampling draws models, which is no noise on counts."""


def broken_rules(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node) == "np.random.default_rng()":
            yield "draws from the operating system"
        elif isinstance(node, ast.Call) and _draws_integers(node):
            yield "draws integers that are no seed"
        elif isinstance(node, ast.Attribute):
            of = ast.unparse(node.value)
            if node.attr in RAW | RELEASES:
                yield f"names .{node.attr}"
            elif (of.endswith("rng") and node.attr not in LUCK) or node.attr in LAWS:
                yield f"draws .{node.attr}"


def _draws_integers(node):
    called = isinstance(node.func, ast.Attribute) and node.func.attr == "integers"
    return called and [ast.unparse(argument) for argument in node.args] != ["2 ** 62"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_learner_draws_no_noise_and_sees_no_raw_count(path):
    found = broken_rules(path.read_text())
    if path.name in POSTERIOR:
        found = (rule for rule in found if not rule.startswith("draws ."))
    assert list(found) == []


@pytest.mark.parametrize(
    "text",
    [
        "users.raw.visits",
        "plan.release(counts, sampler=sampler)",
        "plan.noise.draw(sampler, 3)",
        "self.rng.laplace(scale=2.0, size=3)",
        "self.rng.integers(-3, 4)",
        "np.rint(rng.standard_normal(3))",
        "np.random.default_rng()",
        "luck.vonmises(0, 1, 3)",
    ],
)
def test_the_rules_notice(text):
    assert list(broken_rules(text))


def test_every_file_stands_in_the_contract_about_imports():
    kept = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    contracts = {one["name"]: one for one in kept["tool"]["importlinter"]["contracts"]}
    ruled = contracts["A learner draws no noise and sees no raw count"]["source_modules"]
    for path in FILES:
        name = ".".join(("discreet", *path.relative_to(PACKAGE).with_suffix("").parts))
        assert name in ruled or name.rpartition(".")[0] in ruled, name
