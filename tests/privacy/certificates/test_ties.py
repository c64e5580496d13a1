"""A certificate is tied to a release: whoever edits one proves something else, and that shows."""

import copy
from fractions import Fraction

import pytest

from discreet.adversarial.mechanism import LayeredSize, calibrate_layered
from discreet.errors import CalibrationError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle, certify, verify
from discreet.privacy.certificates import verify as verifier
from discreet.privacy.certificates.document import claim_of
from discreet.privacy.mechanisms.registry import everything
from discreet.privacy.trust import make_trust
from helpers.calibrating import calibrated
from helpers.certificates import resealed

SHAPE = Shape(states=3, actions=2, horizon=2)
STREAM = {"schedule": "continual", "episodes": 5}
POOLED = STREAM | {"stationary": True}
CENTRED = {"statistics": ("transitions", "rewards"), "last_transitions": False}
TREE = Central(2, mechanism="tree-signed")
REPORTS = Local(2, 1e-3, mechanism="gaussian")
BOUNDED, STEP = Local(8, 1e-2, mechanism="bounded"), Shape(states=2, actions=1, horizon=1)
SIZE = LayeredSize(widths=(1, 2, 1), actions=2)


def layered(trust, feedback, **options):
    return lambda: calibrate_layered(trust, SIZE, 4, feedback=feedback, **options)


def of(trust, shape=SHAPE, **options):
    return lambda: calibrated(trust, shape, **options)


PLANS = {
    "central batch gaussian": (of(Central(2, 1e-3, mechanism="gaussian")), None),
    "central batch gaussian centred": (of(Central(2, 1e-3, mechanism="gaussian"), **CENTRED), None),
    "central batch laplace": (of(Central(2, mechanism="laplace")), None),
    "central batch laplace centred": (of(Central(2, mechanism="laplace"), **CENTRED), None),
    "central continual toeplitz": (of(Central(2, 1e-3, mechanism="toeplitz"), **STREAM), None),
    "central continual toeplitz pooled": (
        of(Central(2, 1e-3, mechanism="toeplitz"), **POOLED),
        None,
    ),
    "central continual tree-signed": (of(TREE, **STREAM), None),
    "central continual tree-laplace": (of(Central(2, mechanism="tree-laplace"), **STREAM), None),
    "local batch split": (of(Local(2, mechanism="split")), None),
    "local continual laplace": (of(Local(2, mechanism="laplace"), **STREAM), None),
    "local continual gaussian": (of(Local(2, 1e-3, mechanism="gaussian"), **STREAM), None),
    "local continual bounded": (of(BOUNDED, STEP, **STREAM), None),
    "local continual randomized-response": (
        of(Local(2, mechanism="randomized-response"), **STREAM),
        None,
    ),
    "local continual one-step": (of(Local(2, mechanism="one-step"), **STREAM), None),
    "shuffle batch bits": (of(Shuffle(2, 1e-2, mechanism="bits", honest=0.8)), 50),
    "shuffle batch histogram": (of(Shuffle(4, 1e-2, honest=0.8), **CENTRED), 50),
    "shuffle batch histogram in their limit": (of(Shuffle(4, 1e-2, honest=0.8), **CENTRED), None),
    "central layered tree-signed": (layered(TREE, "full", public_losses=True), None),
    "local layered gaussian": (layered(REPORTS, "bandit"), None),
    "local layered gaussian, all losses": (layered(REPORTS, "full"), None),
}
"""A plan of every mechanism that can be certified, and the users of its batch."""


@pytest.fixture(scope="module")
def made():
    """Name -> certificate, plan and users; each is made once."""
    found = {}

    def make(name):
        if name not in found:
            plan, users = PLANS[name][0](), PLANS[name][1]
            found[name] = certify(plan, users=users).to_dict(), plan, users
        return found[name]

    return make


def test_no_mechanism_is_left_out():
    """What is not listed is not certified."""
    for m in everything():
        if m.trust != "none" and f"{m.trust} {m.schedule} {m.name}" not in PLANS:
            trust = make_trust(m.trust, epsilon=2, delta=1e-3, mechanism=m.name)
            plan = calibrated(trust, SHAPE, **(STREAM if m.schedule == "continual" else {}))
            with pytest.raises(UnsupportedError):
                claim_of(plan)


def others(name, value):
    """What an attacker may write instead of a value of a release."""
    if name == "statistics":
        return [value[1:], value[:1]]
    if name == "widths":
        return [value[1:], [1] * len(value)]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, *([value - 1] if value > 1 else []), 2 * value]
    words = {
        "trust": ["central", "local", "shuffle"],
        "schedule": ["batch", "continual", "layered continual"],
        "feedback": ["full", "bandit"],
        "mechanism": sorted(
            {word for names, _ in verifier.KINDS.values() for word in names.split()}
        ),
        "honest": ["1", "1/2", "1/10"],
        "users": [1, 50],
    }
    return [word for word in words[name] if word != value]


def noises(value):
    """More noise and less, whatever the parameter is."""
    if isinstance(value, list):
        return [[noises(part)[i] for part in value] for i in (0, 1)] + [value[1:]]
    if isinstance(value, int):
        return [2 * value, value // 2 or 2]
    if len(value) == 64:  # a SHA-256
        return [value[::-1]]
    return [str(Fraction(value) / 2), str(Fraction(value) * Fraction(3, 2))]


def edits(data):
    """(what was edited, the edited file)."""

    def edited(*path, value):
        out = copy.deepcopy(data)
        place = out
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        return ".".join(path), resealed(out)

    for name, value in data["release"].items():
        yield from (edited("release", name, value=other) for other in others(name, value))
    for name, value in data["noise"].items():
        if name != "name":
            yield from (edited("noise", name, value=other) for other in noises(value))
    yield edited("moves", value=verifier.File(data).moved)
    both = copy.deepcopy(data)
    both["epsilon"], both["release"]["participations"] = "100", 4
    yield "participations for epsilon", resealed(both)


@pytest.mark.parametrize("name", PLANS, ids=lambda name: name.replace(" ", "-"))
def test_an_edited_certificate_is_refused_or_says_what_it_proves(made, name):
    data, plan, users = made(name)
    wanted, before = claim_of(plan, users=users).to_dict(), verifier.claim(data)
    assert verify(data, of=plan, users=users) <= Fraction(data["bound"])
    tried = 0
    for what, edited in edits(data):
        tried += 1
        try:
            verifier.File(edited)
        except verifier.Refused:
            continue
        assert verifier.claim(edited) != before, what  # whether or not it is true
        with pytest.raises(verifier.Refused, match="certificate of something else"):
            verifier.compare(edited, wanted)
    assert tried > 20
    for part in ("epsilon", "delta", "bound"):
        less = str(Fraction(data[part]) / 2 - Fraction(1, 10**9))
        with pytest.raises(verifier.Refused):
            verifier.check(resealed(data | {part: less}))


@pytest.mark.parametrize("horizon", [1, 2, 3, 7])
@pytest.mark.parametrize("states", [1, 2, 3])
@pytest.mark.parametrize("last_transitions", [True, False])
def test_moves_at_every_shape(horizon, states, last_transitions):
    shape = Shape(states=states, actions=2, horizon=horizon)
    options = {"statistics": ("rewards", "transitions"), "last_transitions": last_transitions}
    for trust, users in (
        (Central(1, 1e-6, mechanism="gaussian"), None),
        (Central(1, mechanism="laplace"), None),
        (Shuffle(1, 1e-6), None),
        (Shuffle(1, 1e-6), 1000),
        (Shuffle(1, 1e-6, mechanism="bits"), 1000),
        (Local(1, mechanism="split"), None),
    ):
        plan = calibrated(trust, shape, **options)
        claim = claim_of(plan, users=users)
        moves = verifier.moves_of(claim.release)[claim.noise["name"]]
        if isinstance(trust, Central):
            assert moves == verifier.shifts((1, plan.sensitivity.cells))
        elif isinstance(trust, Local):
            assert moves == verifier.shifts((1, 1), (-1, 1))
        elif claim.noise["name"] == "histogram":
            assert sum(moves["times"]) == plan.moves
        else:
            assert moves == verifier.shifts((1, plan.moves), (-1, plan.moves))


def test_a_certificate_of_one_plan_is_none_of_another(made):
    data = made("central batch gaussian")[0]
    shapes = [Shape(4, 2, 2), Shape(3, 3, 2), Shape(3, 2, 3)]
    another = [
        *(Central(2, 1e-3, mechanism="gaussian").calibrate(shape) for shape in shapes),
        Central(1, 1e-3, mechanism="gaussian").calibrate(SHAPE),
        Central(2, 1e-4, mechanism="gaussian").calibrate(SHAPE),
        Central(2, mechanism="laplace").calibrate(SHAPE),
        Local(2).calibrate(SHAPE),
        Central(2, 1e-3, mechanism="gaussian").calibrate(SHAPE, statistics=("visits",)),
    ]
    for other in another:
        with pytest.raises(CalibrationError, match=r"something else|was asked for"):
            verify(data, of=other)


def test_a_certificate_of_a_batch_is_none_of_a_larger_one(made):
    data, plan, users = made("shuffle batch bits")
    with pytest.raises(CalibrationError, match=r"release\.users is 50, and 60 was asked for"):
        verify(data, of=plan, users=users + 10)


def test_a_weaker_guarantee_is_refused_and_a_stronger_one_is_not(made):
    data, plan, _ = made("local continual laplace")
    wanted = claim_of(plan).to_dict()
    verifier.compare(data, wanted | {"epsilon": "3"})
    with pytest.raises(verifier.Refused, match="It proves epsilon 2, and 1 was asked for"):
        verifier.compare(data, wanted | {"epsilon": "1"})


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("shuffle batch bits", {"users": 49}, "not the sum of that of 39 honest users"),
        ("shuffle batch bits", {"honest": "1/100"}, "that of 0 honest users"),
        ("shuffle batch bits", {"users": None}, "release.users of a batch"),
        ("shuffle batch bits", {"trust": "shuffle batch", "schedule": ""}, "no release by"),
        (
            "central layered tree-signed",
            {"trust": "central layered", "schedule": "continual"},
            "trust to be central",
        ),
        ("shuffle batch histogram", {"states": 2}, "lists of 1 kinds"),
        ("shuffle batch histogram in their limit", {"users": 50}, "null of the limit"),
        ("central continual toeplitz", {"episodes": 20}, "noise.length"),
        ("central continual toeplitz", {"participations": 5}, "only one participation"),
        ("central continual toeplitz", {"participations": 5, "separation": 5}, "only one"),
        ("central continual tree-laplace", {"episodes": 9}, "Recomputed"),
        ("central continual tree-signed", {"levels": 9}, "Recomputed"),
        ("local continual gaussian", {"stationary": True}, "no noise of kind"),
        ("central batch gaussian", {"horizon": 3}, "Recomputed"),
        ("central batch gaussian", {"participations": 2}, "Recomputed"),
        ("local layered gaussian", {"public_losses": True}, "no noise of kind"),
        ("local layered gaussian, all losses", {"widths": [1, 3, 1]}, "Recomputed"),
    ],
)
def test_what_cannot_be_is_refused(made, name, changes, reason):
    data = made(name)[0]
    with pytest.raises(verifier.Refused, match=reason):
        verifier.check(resealed(data | {"release": data["release"] | changes}))


@pytest.mark.parametrize(
    ("honest", "words"),
    [
        ("1", ", all of them"),
        ("2/2", ", all of them"),
        ("4/5", "at least {share} of them"),
    ],
)
def test_a_fraction_of_one_is_everybody_and_not_one_user(made, honest, words):
    data = made("shuffle batch bits")[0]
    said = verifier.claim(data | {"release": data["release"] | {"honest": honest}})
    share = 4 * data["release"]["users"] // 5
    assert f"{words.format(share=share)} honest" in said


def test_a_local_report_has_one_draw(made):
    data = made("local continual bounded")[0]
    with pytest.raises(verifier.Refused, match="that of 1 honest users"):
        verifier.check(resealed(data | {"noise": data["noise"] | {"draws": 2}}))
