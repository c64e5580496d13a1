"""A mechanism answers for itself: one of your own takes one file, and nobody names one of ours."""

import ast
from pathlib import Path

import pytest

import discreet
from discreet.auditing import audit, check_mechanism
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import laplace_scale
from discreet.privacy.mechanisms import registry
from discreet.privacy.mechanisms.additive import AddedContinually, AddedOnce
from discreet.privacy.mechanisms.base import AuditSizes, guaranteed
from discreet.privacy.mechanisms.noise import Laplace
from discreet.privacy.mechanisms.registry import MechanismSpec
from discreet.privacy.mechanisms.split import SplitBatch
from discreet.privacy.mechanisms.tree import TreeNoise, binary_shape
from helpers.calibrating import calibrated as of_schedule
from helpers.studies import RIVER, advance, begin

SHAPE = Shape(states=2, actions=2, horizon=2)


def twice(trust, sensitivity):
    """Twice the noise that epsilon asks for."""
    return Laplace(2 * laplace_scale(sensitivity.l1, trust.epsilon)), guaranteed(
        trust, trust.epsilon, 0.0
    )


def twice_in_a_tree(trust, sensitivity, episodes):
    """The same on the nodes of a tree."""
    shape = binary_shape(episodes)
    scale = 2 * laplace_scale(sensitivity.l1 * shape.levels, trust.epsilon)
    noise = TreeNoise(episodes=episodes, distribution=Laplace(scale), shape=shape)
    return noise, guaranteed(trust, trust.epsilon, 0.0)


class Coins(SplitBatch):
    """Bits that are false more often than epsilon asks for."""

    @staticmethod
    def flips(trust, shape, statistics):
        flip, guarantee = SplitBatch.flips(trust, shape, statistics)
        return (flip + 0.5) / 2, guarantee  # below one half, the rate of the true bit


OWN = {
    "flow-ucb": MechanismSpec(
        "central", "batch", "doubled", AddedOnce(twice), pure=True, certified_as="laplace"
    ),
    "dp-ucbvi": MechanismSpec(
        "central",
        "continual",
        "doubled-tree",
        AddedContinually(twice_in_a_tree, audit=AuditSizes(long=False)),
        pure=True,
        certified_as="tree-laplace",
    ),
    "explore-then-commit": MechanismSpec(
        "local",
        "batch",
        "coins",
        Coins,
        pure=True,
        randomises=True,
        certified_as="split",
    ),
}
"""By a learner that can use it."""


@pytest.fixture(params=OWN)
def learner(request, monkeypatch):
    monkeypatch.setattr(registry, "_MECHANISMS", list(registry.everything()))
    registry.register(OWN[request.param])
    return request.param


def trust_of(learner):
    kind = {"central": discreet.Central, "local": discreet.Local}[OWN[learner].trust]
    return kind(1, mechanism=OWN[learner].name)


def calibrated(learner):
    spec = OWN[learner]
    length = {"episodes": 8} if spec.schedule == "continual" else {}
    return of_schedule(trust_of(learner), SHAPE, schedule=spec.schedule, **length)


def test_one_of_your_own_is_calibrated_and_learnt_with(learner):
    mechanism = calibrated(learner)
    assert mechanism.spec is OWN[learner] and mechanism.guarantee.epsilon == 1
    result = discreet.learn(RIVER, learner=learner, trust=trust_of(learner), episodes=400, seed=1)
    assert result.guarantee.epsilon == 1 and result.guarantee.notion == mechanism.guarantee.notion


def test_one_of_your_own_is_audited_and_checked(learner):
    name = f"{OWN[learner].trust}/{OWN[learner].name}"
    rows = audit([name], quick=True)
    assert rows and all(row.holds for row in rows)
    assert check_mechanism(name).problems == ()


def test_one_of_your_own_is_certified_as_what_it_is_an_instance_of(learner):
    from discreet.privacy import certify, verify

    mechanism = calibrated(learner)
    made = certify(mechanism)
    assert made.holds and verify(made.to_dict(), of=mechanism) == 0


@pytest.mark.parametrize("learner", ["flow-ucb", "explore-then-commit"], indirect=True)
def test_a_study_and_its_dossier_take_one_of_your_own(learner, tmp_path):
    from discreet.study.dossier.bundle import members
    from discreet.study.dossier.facts import gather

    if OWN[learner].schedule == "continual":
        pytest.skip("No study has a stream.")
    study = begin(tmp_path / "study.db", trust_of(learner), learner=learner, episodes=300)
    for seed in range(3):
        if not study.finished:
            advance(study, seed)
    study = discreet.open_study(tmp_path / "study.db")
    assert study.users and study.mechanism.spec == OWN[learner]
    page = members(study, *gather(study, lambda _: None))["dossier.html"].decode()
    assert OWN[learner].name in page
    assert "No certificate" not in page


SOURCES = Path(discreet.__file__).parent
EXEMPT = ("privacy/mechanisms/", "papers/", "device/", "privacy/certificates/")
OF_ALL = {"base", "registry", "additive", "noise"}
"""Modules of `mechanisms` that belong to no single one."""
NAMES = {spec.name for spec in registry.everything()} - {"none"}
DISTRIBUTIONS = {"auditing/additive.py", "auditing/draws.py"} | {"auditing/probes.py"}
"""Files that compare names of noise distributions, which some mechanisms share."""


def classes_of_one():
    """Classes in the files of single mechanisms."""
    for file in (SOURCES / "privacy/mechanisms").glob("*.py"):
        if file.stem not in OF_ALL:
            tree = ast.parse(file.read_text("utf-8"))
            yield from (node.name for node in tree.body if isinstance(node, ast.ClassDef))


CLASSES = set(classes_of_one())


def named_in(tree, kinds=frozenset()):
    """How a file names single mechanisms."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            home = getattr(node, "module", None) or ""
            for alias in node.names:
                whole = f"{home}.{alias.name}".strip(".").split(".")
                if whole[:3] == ["discreet", "privacy", "mechanisms"] and whole[3] not in OF_ALL:
                    yield f"line {node.lineno} imports {alias.name}"
        if isinstance(node, ast.Compare):
            words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            if words & (NAMES - kinds):
                yield f"line {node.lineno} compares: {ast.unparse(node)}"
        if isinstance(node, ast.keyword) and node.arg == "mechanism":
            asked = getattr(node.value, "value", None)
            yield from [f"line {node.value.lineno} asks for {asked!r}"] if asked in NAMES else []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            if asked & CLASSES:
                yield f"line {node.lineno} tests a class: {ast.unparse(node)}"


def test_nobody_names_a_single_mechanism():
    found = {}
    for file in sorted(SOURCES.rglob("*.py")):
        name = file.relative_to(SOURCES).as_posix()
        if not name.startswith(EXEMPT):
            kinds = {"laplace", "gaussian"} if name in DISTRIBUTIONS else frozenset()
            if problems := list(named_in(ast.parse(file.read_text("utf-8")), kinds)):
                found[name] = problems
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "from discreet.privacy.mechanisms.tree import TreeNoise",
        "from discreet.privacy.mechanisms import bits",
        "import discreet.privacy.mechanisms.split",
        "chosen = name in ('tree-signed', 'other')",
        "Shuffle(1, 1e-6, mechanism='histogram')",
        "isinstance(mechanism, BatchMechanism | HistogramBatch)",
    ],
)
def test_the_scan_sees_each_way_of_naming_one(line):
    assert list(named_in(ast.parse(line)))
    assert not list(named_in(ast.parse("from discreet.privacy.mechanisms.base import Mechanism")))
