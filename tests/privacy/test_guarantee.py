"""A guarantee is never printed without what is needed to read it."""

import json
import math
import pathlib
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.piles import zcdp_delta
from discreet.privacy.guarantee import (
    ASSUMPTIONS,
    NO_GUARANTEE,
    NOTIONS,
    REHEARSED,
    Guarantee,
    Rehearsal,
    implied,
    rounded_down,
    rounded_noise,
    rounded_up,
    said,
    shuffled,
)
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.trust import Central, Local, NoPrivacy, Shuffle
from helpers.calibrating import calibrated
from helpers.properties import given, st

MODELS = {"central": Central, "local": Local, "shuffle": Shuffle}
PAIRS = [(name, schedule) for name in MODELS for schedule in ("batch", "continual")]


@pytest.mark.core
@pytest.mark.parametrize("notion", ["JDP", "LDP", "SDP"])
def test_the_line_names_everything(notion):
    line = str(Guarantee(notion=notion, epsilon=1, delta=1e-6))
    assert line == f"(1, 1e-06)-{notion}, one user's whole episode, replace-one"
    assert str(Guarantee(notion=notion, epsilon=1, delta=0)).startswith(f"(1, 0)-{notion}")


def test_no_guarantee_is_printed_smaller_than_it_is():
    line = str(Guarantee(notion="JDP", epsilon=1.00049, delta=1.0004e-6))
    assert line.startswith("(1.001, 1.01e-06)-JDP")


@pytest.mark.parametrize("seed", range(200))
def test_printed_numbers_bracket_the_value_by_less_than_one_unit_of_the_last_digit(seed):
    rng = np.random.default_rng(seed)
    value, digits = float(10 ** rng.uniform(-12, 6)), int(rng.integers(1, 9))
    if seed % 3 == 0:
        value = float(f"{value:.{digits}g}")  # needs no rounding
    up, down = rounded_up(value, digits), rounded_down(value, digits)
    assert float(down) <= value <= float(up)
    for text in (up, down):
        assert len(Decimal(text).normalize().as_tuple().digits) <= digits
    unit = Decimal(10) ** (Decimal(repr(value)).adjusted() - digits + 1)
    assert Decimal(up) - Decimal(down) in (0, unit)
    if seed % 3 == 0:
        assert up == down


def test_numbers_that_need_no_digits():
    assert [rounded_up(x) for x in (0, 1, 0.1, 0.3, 12, 1e-6)] == [
        "0",
        "1",
        "0.1",
        "0.3",
        "12",
        "1e-06",
    ]
    assert rounded_up(math.inf) == "inf"
    assert rounded_up(9.9999, 2) == "10"


@given(st.fractions(min_value=-(10**9), max_value=10**9), st.integers(1, 20))
def test_fractions_are_rounded_as_they_are(value, digits):
    down, up = Fraction(rounded_down(value, digits)), Fraction(rounded_up(value, digits))
    assert down <= value <= up
    if value:
        assert up - down <= abs(value) * Fraction(10) ** (1 - digits)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 20))
def test_doubles_are_rounded_as_the_decimals_they_stand_for(value, digits):
    down, up = Decimal(rounded_down(value, digits)), Decimal(rounded_up(value, digits))
    assert down <= Decimal(repr(value)) <= up
    if digits >= 17:
        assert down == up


@given(st.floats(0, 1e12))
def test_noise_is_not_printed_larger_than_it_is(value):
    assert float(rounded_noise(value).replace(",", "")) <= value


@pytest.mark.parametrize("honest", [0.99999, 0.999951, 0.12344, 0.123456789, 2 / 3, 0.9, 0.5])
def test_the_honest_fraction_is_printed_with_all_its_digits(honest):
    """More would be an assumption that nobody made, less one that does not carry the guarantee."""
    [text] = [one for one in shuffled(honest, "noise") if "honestly" in one]
    assert float(text.split()[2]) == honest


@pytest.mark.parametrize(
    ("trust", "mechanism"),
    [(trust, one) for trust in PAIRS for one in mechanisms(*trust)],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_no_mechanism_prints_less_than_it_costs(trust, mechanism):
    """Numbers whose nearest decimals of few digits lie below them."""
    asked = {"epsilon": 1.00049, "delta": 1.00049e-6, "mechanism": mechanism}
    if trust[0] == "shuffle":
        asked["honest"] = 0.900049
    schedule = {"episodes": 50} if trust[1] == "continual" else {}
    made = MODELS[trust[0]](**asked)
    plan = calibrated(made, Shape(states=2, actions=2, horizon=1), schedule=trust[1], **schedule)
    guarantee = plan.guarantee
    epsilon, delta = re.match(r"\((\S+), (\S+)\)-", str(guarantee)).groups()
    assert Decimal(epsilon) >= Decimal(repr(float(guarantee.epsilon)))
    assert Decimal(delta) >= Decimal(repr(float(guarantee.delta)))
    assert guarantee.epsilon >= 1.0  # what was asked for, and not some other number
    for text in guarantee.assumptions:
        for number in re.findall(r"at least (\S+) of the users", text):
            assert float(number) == 0.900049


def test_nothing_that_is_guaranteed_is_printed_to_the_nearest_digit():
    """Epsilons, deltas and honest fractions in sentences of the source."""
    nearest = re.compile(r"\{[^{}]*(epsilon|delta|honest|zcdp)[^{}]*:[,.0-9]*[gef%]\}")
    found = [
        (path.name, line.strip())
        for path in (pathlib.Path(discreet.__file__).parent).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if nearest.search(line) and ">>>" not in line
    ]
    assert found == []


def test_a_false_claim_is_shown_beside_the_truth():
    line = str(Guarantee(notion="SDP", epsilon=0.055, delta=1e-6, claimed="(1, 1e-06)-SDP"))
    assert line.endswith("[claimed (1, 1e-06)-SDP]")


def test_json_has_no_infinities():
    values = json.loads(json.dumps(NO_GUARANTEE.to_dict(), allow_nan=False))
    assert values["epsilon"] is None
    assert values["notion"] == "none"


def test_every_notion_states_its_assumptions():
    assert set(ASSUMPTIONS) == set(NOTIONS)
    for notion in ("JDP", "LDP", "SDP"):
        assert any("once" in text for text in ASSUMPTIONS[notion])


def test_stamping_changes_the_stamp_only():
    guarantee = Guarantee(notion="JDP", epsilon=1, delta=0)
    assert guarantee.stamped(secure=False) == guarantee
    assert not guarantee.stamped(secure=True).simulated


def test_simulated_guarantees_say_so():
    guarantee = Guarantee(notion="JDP", epsilon=1, delta=1e-6, assumptions=("a",))
    rehearsed = said(guarantee)
    assert isinstance(rehearsed, Rehearsal)
    assert str(rehearsed) == f"{REHEARSED}: {guarantee}"
    assert rehearsed.to_dict() == guarantee.to_dict()
    assert said(rehearsed) == rehearsed
    assert said(NO_GUARANTEE) is NO_GUARANTEE
    real = guarantee.stamped(secure=True)
    assert said(real) is real


@pytest.mark.parametrize(
    "values",
    [
        {"notion": "DP"},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"delta": -0.1},
        {"delta": 1.1},
    ],
)
def test_impossible_guarantees_are_refused(values):
    with pytest.raises(InvalidInputError):
        Guarantee(**({"notion": "JDP", "epsilon": 1, "delta": 0} | values))


# --- guarantees that follow

SHAPE = Shape(states=2, actions=2, horizon=3)
STREAM = {"schedule": "continual", "episodes": 64}


@pytest.mark.parametrize("trust", [Shuffle(1, 1e-6), Local(1)])
def test_shuffle_and_local_privacy_imply_joint_privacy(trust):
    mechanism = trust.calibrate(SHAPE)
    [found] = implied(mechanism.guarantee)
    assert found.guarantee.notion == "JDP"
    assert found.guarantee.epsilon == mechanism.guarantee.epsilon
    assert found.guarantee.delta == mechanism.guarantee.delta
    assert "billboard" in found.reason
    assert set(mechanism.guarantee.assumptions) < set(found.guarantee.assumptions)
    assert found.to_dict()["reason"] == found.reason


@pytest.mark.parametrize("trust", [Central(1, 1e-6), NoPrivacy()])
def test_joint_privacy_implies_nothing_more(trust):
    assert implied(trust.calibrate(SHAPE).guarantee) == ()


def test_rho_is_the_squared_distance_over_two_variances():
    mechanism = Central(1, 1e-6, mechanism="gaussian").calibrate(SHAPE)
    assert mechanism.concentrated() == pytest.approx(18 / (2 * mechanism.noise.sigma**2))
    local = calibrated(Local(1, 1e-6, mechanism="gaussian"), SHAPE, stationary=True, **STREAM)
    assert local.concentrated() == pytest.approx(3 * 18 / (2 * local.noise.distribution.sigma**2))


def test_the_renyi_divergence_of_a_unit_move_is_what_rho_says():
    """Of what is released, at several orders: at most order·rho, and almost that."""
    mechanism = Central(1, 1e-6, mechanism="gaussian").calibrate(SHAPE, statistics=("visits",))
    rho = mechanism.concentrated() / 6  # of one of the 2H unit moves
    reach = math.ceil(40 * mechanism.noise.sigma)
    logs = -(np.arange(-reach, reach + 1) ** 2) / (2 * mechanism.noise.sigma**2)
    logs -= np.logaddexp.reduce(logs)
    here, moved = logs[1:], logs[:-1]
    for order in (2, 5, 17):
        terms = order * here + (1 - order) * moved
        divergence = float(np.logaddexp.reduce(terms)) / (order - 1)
        assert 0.99 * order * rho < divergence <= order * rho * (1 + 1e-6)


def test_concentration_of_streams_is_consistent_with_their_guarantee():
    """It converts to a delta no better than the exact one, and not much worse."""
    plan = calibrated(Central(1, 1e-6), SHAPE, **STREAM)
    assert 1e-6 * 0.99 < zcdp_delta(plan.concentrated(), 1.0) < 3e-5


@pytest.mark.parametrize(
    "plan",
    [
        NoPrivacy().calibrate(SHAPE),
        Central(1).calibrate(SHAPE),
        calibrated(Central(1), SHAPE, **STREAM),
        Local(1).calibrate(SHAPE),
        Shuffle(1, 1e-6).calibrate(SHAPE),
    ],
    ids=lambda plan: f"{plan.guarantee.notion}-{plan.name}",
)
def test_other_noise_is_not_concentrated(plan):
    assert plan.concentrated() is None


def test_an_infinite_epsilon_stays_infinite():
    guarantee = Shuffle(1, 1e-6).calibrate(SHAPE).guarantee
    [found] = implied(replace(guarantee, epsilon=math.inf, delta=1.0))
    assert found.guarantee.epsilon == math.inf
