"""A learner never draws noise and never sees a raw count: what its modules may import and name."""

import ast
import importlib
import types
from pathlib import Path

import pytest

import discreet.learners
import discreet.mdp
import discreet.privacy

pytestmark = pytest.mark.core

HOME = Path(discreet.learners.__file__).parent
FAMILIES = {"adversarial", "elimination", "etc", "flow_ucb", "streams"}
RUNNERS = {"__init__.py", "check.py", "learn.py", "registry.py"}
"""Of the framework: they simulate people and hand over what was released; no learner is in them."""
FILES = sorted(p for p in HOME.rglob("*.py") if p.parent != HOME or p.name not in RUNNERS)
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
RELEASES = {"simulate", "release", "release_reports", "open", "encoder", "draw", "scatter"}
"""What a plan, a law or a sampler does with raw counts or with noise."""
LAWS = {
    *("laplace", "normal", "standard_normal", "gumbel", "exponential", "standard_exponential"),
    *("geometric", "binomial", "negative_binomial", "poisson", "gamma", "standard_gamma"),
    *("multivariate_normal", "logistic", "standard_cauchy", "lognormal", "standard_t"),
}
"""Distributions of generators that could serve as noise. Uniform draws break ties."""
POSTERIOR = {"psrl.py", "psrl_kernels.py", "psrl_lane_kernels.py", "lane_draws_kernels.py"}
"""Posterior sampling draws models, which is no noise on counts."""
LUCK = {"random", "integers", "choice", "permuted", "bit_generator"}
"""What a learner may ask of its generator: ties, a choice among policies, seeds."""
SOURCES_OF_LUCK = {"random", "secrets", "numpy.random", "scipy.stats", "opendp"}
TUPLES = {"_asdict", "_replace", "_fields"}
"""Methods of named tuples, which are not private."""
PACKAGES = {package.__name__: package._WHERE for package in (discreet, discreet.mdp)} | {
    "discreet.privacy": discreet.privacy._WHERE
}
"""Packages that hand out names of their modules, forbidden ones too."""


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def home_of(module, name):
    """The module that a name comes from, also where a package hands it out."""
    return PACKAGES.get(module, {}).get(name, module)


def hidden_ways(tree):
    """To what may not be imported or named, without saying so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in RAW:
            yield f"says {node.value!r} in line {node.lineno}"
        elif isinstance(node, ast.Name) and node.id in {"__import__", "import_module", "globals"}:
            yield f"calls {node.id} in line {node.lineno}"
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("users"):
            yield f"takes users apart in line {node.lineno}"
        elif isinstance(node, ast.Assign) and _unpacks(node) and _is_users(node.value):
            yield f"unpacks users in line {node.lineno}"
        elif isinstance(node, ast.For | ast.comprehension) and _is_users(node.iter):
            yield "goes through users"
        elif isinstance(node, ast.Starred) and _is_users(node.value):
            yield f"takes users apart in line {node.lineno}"
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("rng"):
            if node.attr not in LUCK:
                yield f"draws .{node.attr} in line {node.lineno}"
        elif isinstance(node, ast.Call) and _draws_integers(node):
            yield f"draws integers that are no seed in line {node.lineno}"
        elif isinstance(node, ast.Attribute) and node.attr in RELEASES:
            yield f"names .{node.attr} in line {node.lineno}"
        elif isinstance(node, ast.Attribute) and node.attr in LAWS:
            if not ast.unparse(node.value).endswith("_kernels"):
                yield f"draws .{node.attr} in line {node.lineno}"
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            own = ast.unparse(node.value) in {"self", "cls"} or node.attr in TUPLES
            if not own and not node.attr.startswith("__"):
                yield f"names .{node.attr} of another in line {node.lineno}"


def _unpacks(node):
    return any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)


def _is_users(node):
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith("users")


def _draws_integers(node):
    called = isinstance(node.func, ast.Attribute) and node.func.attr == "integers"
    return called and [ast.unparse(argument) for argument in node.args] != ["2 ** 62"]


def broken_rules(text):
    tree = ast.parse(text)
    yield from hidden_ways(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"imports relatively in line {node.lineno}"
    for module, name in imports(tree):
        if name == "*":
            yield f"imports everything of {module}"
        if module in SOURCES_OF_LUCK or f"{module}.{name}" in SOURCES_OF_LUCK:
            yield f"imports {module} {name}"
        if {module if not name else "", f"{module}.{name}"} & {*PACKAGES, "importlib"}:
            yield f"imports {module} {name} as a whole"
        whole = f"{home_of(module, name)}.{name}"
        for forbidden in FORBIDDEN_MODULES:
            if whole == forbidden or whole.startswith(forbidden + "."):
                yield f"imports {whole}"
        if name in FORBIDDEN_IMPORTS.get(module, ()):
            yield f"imports {name} from {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in RAW:
            yield f"names .{node.attr} in line {node.lineno}"


def where_from(value):
    """The module that an object is, or was made in."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    found = getattr(value, "__module__", "")
    return found if isinstance(found, str) else ""


def broken_by_objects(module):
    """The same rules for what a module holds in the end, by whatever way it came."""
    for name, value in vars(module).items():
        home = where_from(value)
        forbidden = (*FORBIDDEN_MODULES, *SOURCES_OF_LUCK)
        if any(home == one or home.startswith(one + ".") for one in forbidden):
            yield f"holds {name} of {home}"
        if isinstance(value, types.ModuleType) and home in FORBIDDEN_IMPORTS:
            yield f"holds {home} as a whole"
        if getattr(value, "__name__", "") in FORBIDDEN_IMPORTS.get(home, ()):
            yield f"holds {name} of {home}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_learner_draws_no_noise_and_sees_no_raw_count(path):
    draws = path.name in POSTERIOR
    rules = [r for r in broken_rules(path.read_text()) if not (draws and r.startswith("draws "))]
    assert rules == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nor_does_it_hold_what_draws_or_sees_them(path):
    parts = path.relative_to(HOME.parent).with_suffix("").parts
    module = importlib.import_module(".".join(("discreet", *parts)).removesuffix(".__init__"))
    held = [rule for rule in broken_by_objects(module) if path.name not in POSTERIOR]
    assert held == []


@pytest.mark.parametrize(
    "text",
    [
        "from discreet.learners.learn import SimulationSampler",
        "from discreet.privacy.streams import lane_kernels",
        "from discreet.privacy.streams.lane_kernels import add_laplace as plus",
        "from discreet.mdp import *",
        "from numpy import random",
    ],
)
def test_objects_give_a_learner_away(text):
    module = types.ModuleType("cheat")
    exec(text, vars(module))
    assert list(broken_by_objects(module))


@pytest.mark.parametrize(
    "text",
    [
        "from discreet.privacy.sampling.samplers import SimulationSampler",
        "from discreet.privacy import sampling",
        "import discreet.mdp.simulation",
        "from discreet.privacy.mechanisms._laws import LaplaceLaw",
        "from discreet.privacy.streams.lane_kernels import add_laplace",
        "def cheat(users):\n    return users.raw.visits",
        "def cheat(users):\n    return users[1].visits",
        "def cheat(users):\n    return getattr(users, 'raw').visits",
        "from discreet.privacy import SimulationSampler",
        "from discreet.mdp import sample_counts",
        "from discreet.mdp import Counts",
        "from discreet import privacy",
        "import discreet.privacy as hidden",
        "import discreet",
        "import importlib",
        "__import__('discreet.privacy.sampling.samplers')",
        "def cheat(plan, counts, sampler):\n    return plan.release(counts, sampler=sampler)",
        "def cheat(plan, sampler):\n    return plan.law.draw(sampler, 3)",
        "def cheat(stream):\n    return stream._release",
        "def cheat(self):\n    return self.rng.laplace(scale=2.0, size=3)",
        "def cheat(self):\n    return self.rng.integers(-3, 4)",
        "def cheat(self):\n    return self.rng.triangular(-3, 0, 3)",
        "def cheat(users):\n    _, exact, *_ = users\n    return exact",
        "def cheat(users):\n    return [part for part in users]",
        "def cheat(users):\n    return list((*users,))",
        "from ...privacy.sampling.samplers import SimulationSampler",
        "from discreet.mdp import *",
        "from numpy.random import laplace",
        "from numpy import random",
        "import secrets",
        "from scipy.stats import laplace",
        "def cheat(rng):\n    return np.rint(rng.standard_normal(3))",
    ],
)
def test_the_rules_notice(text):
    assert list(broken_rules(text))


def test_there_are_files_to_check():
    assert {path.parent.name for path in FILES} >= FAMILIES
    assert len(FILES) > 30
