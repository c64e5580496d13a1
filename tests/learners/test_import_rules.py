"""A learner never draws noise and never sees a raw count: what its modules may import and name."""

import ast
import importlib
import types
from pathlib import Path

import numpy as np
import pytest

import discreet.learners
import discreet.mdp
import discreet.privacy
from helpers.loading import homes

pytestmark = pytest.mark.core

PACKAGE = Path(discreet.__file__).parent
HOME = PACKAGE / "learners"
FAMILIES = {"adversarial", "elimination", "flow_ucb"}
RUNNERS = {"__init__.py", "check.py", "learn.py", "registry.py"}
"""Of the framework: they simulate people and hand over what was released; no learner is in them."""
ADVERSARIAL = ("barrier", "entropy", "learner", "occupancy", "uc_o_reps", "uob_lbps")
"""Of that room, the learners; the others are their world, losses, mechanism, noise and audit."""
FILES = sorted(
    [p for p in HOME.rglob("*.py") if p.parent != HOME or p.name not in RUNNERS]
    + [PACKAGE / "adversarial" / f"{name}.py" for name in ADVERSARIAL]
)
RULED = {
    ".".join(("discreet", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in FILES
}
"""Names of their modules."""
FORBIDDEN_MODULES = (
    "discreet.mdp.counts",
    "discreet.mdp.simulation",
    "discreet.mdp.trajectories",
    "discreet.auditing",
    "discreet.privacy.mechanisms",
    "discreet.privacy.sampling",
    "discreet.privacy.vectors",
)
"""Samplers, mechanisms, attacks, and what holds raw counts."""
FORBIDDEN_IMPORTS = {
    "discreet.privacy.mechanisms.base": {"batch_release", "noisy_batch"},
    "discreet.privacy.simulation.users": {"play_episode"},
}
RAW = {"raw", "randomness", "noise_block", "fresh", "path"}
"""What a kernel of users holds for the release alone."""
KINDS = ("BatchMechanism", "ContinualMechanism", "Mechanism")
"""What a learner may know of mechanisms: of which kind one is."""
RELEASES = {
    "simulate",
    "release",
    "release_reports",
    "open",
    "encoder",
    "draw",
    "drawn",
    "scatter",
}
"""What a mechanism, noise or a sampler does with raw counts or with noise."""
LUCK = {"random", "integers", "choice", "permuted", "bit_generator"}
"""What a learner may ask of its generator: ties, a choice among policies, seeds."""
LAWS = {name for name in vars(np.random.Generator) if not name.startswith("_")} - LUCK
"""Distributions of generators, which could serve as noise."""
POSTERIOR = {"psrl.py", "trial.py"}
"""Posterior sampling draws models, which is no noise on counts."""
LIBRARIES = {
    *("abc", "base64", "collections.abc", "dataclasses", "enum", "functools", "itertools", "math"),
    *("numba", "numpy", "numpy.typing", "types", "typing", "zlib"),
}
"""What learners need besides ours; others draw (random, scipy) or look behind (sys, gc)."""
SOURCES_OF_LUCK = {"random", "secrets", "numpy.random", "scipy.stats", "opendp"}
WORKAROUNDS = {"__import__", "compile", "eval", "exec", "globals", "import_module", "locals"}
DUNDERS = {"__init__", "__setattr__"}
OPENERS = {
    *("dict", "enumerate", "filter", "iter", "list", "map", "reversed", "set", "sorted", "tuple"),
    *("vars", "zip"),
}
"""Of built-in functions: what takes a tuple apart."""
TUPLES = {"_asdict", "_replace", "_fields"}
"""Methods of named tuples, which are not private."""
PACKAGES = {one.__name__: homes(one) for one in (discreet, discreet.mdp, discreet.privacy)}
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
        elif isinstance(node, ast.Name) and node.id in WORKAROUNDS:
            yield f"calls {node.id} in line {node.lineno}"
        elif isinstance(node, ast.Call) and _asks_by_name(node):
            yield f"asks for an attribute by its name in line {node.lineno}"
        elif isinstance(node, ast.Call) and _opens_users(node):
            yield f"takes users apart in line {node.lineno}"
        elif isinstance(node, ast.Call) and ast.unparse(node) == "np.random.default_rng()":
            yield f"draws from the operating system in line {node.lineno}"
        elif isinstance(node, ast.Assign | ast.NamedExpr) and _is_users(node.value, exactly=True):
            yield f"calls users by another name in line {node.lineno}"
        elif isinstance(node, ast.Match) and _is_users(node.subject):
            yield f"matches users in line {node.lineno}"
        elif isinstance(node, ast.Attribute) and _is_users(node.value) and node.attr in TUPLES:
            yield f"takes users apart in line {node.lineno}"
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(".random"):
            if node.attr not in {"Generator", "default_rng"}:
                yield f"draws .random.{node.attr} in line {node.lineno}"
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
            own = ast.unparse(node.value) in {"self", "cls"} or node.attr in TUPLES | DUNDERS
            if not own:
                yield f"names .{node.attr} of another in line {node.lineno}"


def _unpacks(node):
    return any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)


def _is_users(node, exactly=False):
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    text = ast.unparse(node)
    return text.split(".")[-1] == "users" if exactly else text.endswith("users")


def _opens_users(node):
    opens = isinstance(node.func, ast.Name) and node.func.id in OPENERS
    return opens and any(_is_users(argument, exactly=True) for argument in node.args)


def _asks_by_name(node):
    """With ``getattr``, of another, what may not be named (or any name that is not written out)."""
    if not (isinstance(node.func, ast.Name) and node.func.id == "getattr"):
        return False
    of, name = node.args[:2]
    if isinstance(name, ast.Constant):
        return name.value in RAW | RELEASES | LAWS or name.value.startswith("_")
    return ast.unparse(of) != "self"


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
        ours = module.partition(".")[0] == "discreet"
        if f"{module}.{name}" in SOURCES_OF_LUCK or not (ours or module in LIBRARIES):
            yield f"imports {module} {name}"
        if ours and name != "*":
            yield from broken_by(name or module, brought(module, name))
        if {module if not name else "", f"{module}.{name}"} & {*PACKAGES, "importlib"}:
            yield f"imports {module} {name} as a whole"
        whole = f"{home_of(module, name)}.{name}"
        if module == "discreet.privacy.mechanisms.base" and name in KINDS:
            continue
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


def brought(module, name):
    """What an import brings, wherever in a module it stands."""
    home = importlib.import_module(module)
    if not name:
        return home
    return (
        getattr(home, name) if hasattr(home, name) else importlib.import_module(f"{module}.{name}")
    )


def broken_by(name, value):
    """The same rules for what is held in the end, by whatever way it came."""
    home = where_from(value)
    forbidden = (*FORBIDDEN_MODULES, *SOURCES_OF_LUCK)
    kind = home == "discreet.privacy.mechanisms.base" and getattr(value, "__name__", "") in KINDS
    if any(home == one or home.startswith(one + ".") for one in forbidden) and not kind:
        yield f"holds {name} of {home}"
    if isinstance(value, types.ModuleType) and _hands_out(value):
        yield f"holds {home} as a whole"
    if getattr(value, "__name__", "") in FORBIDDEN_IMPORTS.get(home, ()):
        yield f"holds {name} of {home}"


def _hands_out(module):
    """A module of ours hands out all it holds, unless it is under these rules, too."""
    name = module.__name__
    return name.partition(".")[0] == "discreet" and name not in {*RULED, "discreet._validate"}


def broken_by_objects(module):
    """What a module holds by the rules of `broken_by`."""
    for name, value in vars(module).items():
        yield from broken_by(name, value)


def serious(rules, path):
    """Posterior sampling draws, and has a generator's words."""
    words = "imports discreet.privacy.sampling.kernels.next_word"
    if path.name not in POSTERIOR:
        return list(rules)
    return [rule for rule in rules if not rule.startswith(("draws ", "holds next_word ", words))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_learner_draws_no_noise_and_sees_no_raw_count(path):
    assert serious(broken_rules(path.read_text()), path) == []


@pytest.mark.parametrize("name", RULED)
def test_nor_does_it_hold_what_draws_or_sees_them(name):
    assert serious(broken_by_objects(importlib.import_module(name)), RULED[name]) == []


@pytest.mark.parametrize(
    "text",
    [
        "from discreet.learners.learn import SimulationSampler",
        "from discreet.privacy.simulation import kernels",
        "from discreet.privacy.simulation.users import play_episode as played",
        "from discreet.privacy.sampling.kernels import next_word as plus",
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
        "from discreet.privacy.mechanisms.noise import Laplace",
        "from discreet.privacy.sampling.kernels import next_word",
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
        "def cheat(plan, sampler):\n    return plan.noise.draw(sampler, 3)",
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
        "def cheat():\n    from discreet.learners.learn import SimulationSampler",
        "import discreet.learners.learn as runner",
        "def cheat():\n    from discreet.learners import check",
        "def cheat():\n    from discreet.privacy.simulation import kernels as users",
        "from discreet.privacy import sampling",
        "def cheat():\n    from discreet.auditing.probes import PresetSampler",
        "def cheat():\n    return -np.log(np.random.random(3))",
        "def cheat():\n    return np.random.default_rng()",
        "def cheat(self):\n    luck = self.rng\n    return luck.vonmises(0, 1, 3)",
        "def cheat(self):\n    return getattr(self.rng, 'laplace')(0, 1, 3)",
        "def cheat(plan, name):\n    return getattr(plan, name)",
        "def cheat(plan):\n    return getattr(plan, 'release')",
        "def cheat(plan):\n    return eval('plan.rel' + 'ease')",
        "def cheat(users):\n    return tuple(users)[1]",
        "def cheat(users):\n    match users:\n        case (_, raw, *_):\n            return raw",
        "def cheat(users):\n    return list(users._asdict().values())[1]",
        "def cheat(users):\n    people = users\n    return people[1]",
        "def cheat(draw):\n    return draw.__closure__[0].cell_contents",
        "def cheat(users):\n    return object.__getattribute__(users, 'ra' + 'w')",
        "from discreet.privacy.mechanisms.base import noisy_batch",
        "from discreet.privacy.vectors import calibrate_vectors",
        "import gc",
        "import os",
        "import scipy",
        "import sys",
        "from operator import itemgetter",
    ],
)
def test_the_rules_notice(text):
    assert list(broken_rules(text))


def test_there_are_files_to_check():
    assert {path.parent.name for path in FILES} >= FAMILIES
    assert len(FILES) > 15
