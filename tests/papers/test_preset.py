"""One preset: its trust model, what it tells of a guarantee, and its plain form."""

import json
import math
from dataclasses import replace

import pytest

from discreet.errors import InvalidInputError
from discreet.papers.presets import Delivered, Preset, Printed, Reference
from discreet.privacy.guarantee import Guarantee

pytestmark = pytest.mark.core

PRESET = Preset(
    name="000",
    paper="000",
    algorithm="An algorithm",
    learner="sdp-pe",
    trust="shuffle",
    mechanism="bits",
    calibration="paper-000",
    settings={"structure": "paper"},
    constants={"tau": Printed("ln(1/delta)", "Line 3")},
    deviations=("one of them",),
    reference=Reference(3, 2, 4, 1000, 1.0, 1e-6, "RiverSwim", {"states": 3}),
    delivers=Delivered(None, 1.0, "messages are seen as they are"),
    delta=1e-6,
)
PROMISE = Guarantee(notion="SDP", epsilon=3.0, delta=0.25, claimed="(1, 1e-06)")


def test_the_trust_model_is_as_printed_unless_somebody_says_otherwise():
    printed = PRESET.trust_model(2.0)
    assert (printed.name, printed.epsilon, printed.delta) == ("shuffle", 2.0, 1e-6)
    assert (printed.mechanism, printed.calibration) == ("bits", "paper-000")
    exact = PRESET.trust_model(2.0, 1e-8, "exact")
    assert (exact.delta, exact.mechanism, exact.calibration) == (1e-8, "bits", "exact")


def test_an_epsilon_is_asked_for_with_an_example():
    with pytest.raises(InvalidInputError, match="paper='000', epsilon=1"):
        PRESET.trust_model(None)


def test_a_run_whose_messages_are_seen_promises_nothing():
    only_sums = replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums"))
    seen = only_sums.seen(PROMISE)
    assert (seen.epsilon, seen.delta) == (math.inf, 1.0)
    assert seen.claimed == "(1, 1e-06) by paper 000"
    assert "if only sums were seen: (3, 0.25)" in seen.assumptions[-1]


def test_a_run_says_the_size_of_its_batches():
    only_sums = replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums"))
    seen = only_sums.seen(PROMISE, "for this size", [10, 4000])
    assert seen.assumptions[-1] == (
        "for this size; the largest batch here had 4,000 users; if only sums were seen: (3, 0.25)"
    )


@pytest.mark.parametrize("given", [None, "", "paper", "paper-000"])
def test_as_printed_has_several_names_and_one_title(given):
    assert PRESET.noise(given) == "paper-000"
    assert PRESET.title(given) == "An algorithm, paper 000"


def test_a_repaired_run_is_not_called_as_the_printed_one():
    assert PRESET.title("exact") == "An algorithm, paper 000, exact noise"


def test_the_calibration_of_another_paper_is_refused():
    with pytest.raises(
        InvalidInputError, match=r"'exact' or 'paper-000'.*'paper-002', which mixes"
    ):
        PRESET.trust_model(1.0, calibration="paper-002")


def test_a_guarantee_that_claims_nothing_or_hides_nothing_is_left_alone():
    assert PRESET.seen(PROMISE) is PROMISE
    exact = replace(PROMISE, claimed=None)
    assert replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums")).seen(exact) is exact


def test_plain_values_say_what_is_printed_where():
    plain = PRESET.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["constants"] == {"tau": ["ln(1/delta)", "Line 3"]}
    assert plain["delivers"] == {
        "epsilon": None,
        "delta": 1.0,
        "why": "messages are seen as they are",
    }
    assert "delivers_if_only_sums_are_seen" not in plain
    more = replace(PRESET, if_only_sums=Delivered(3.0, 0.25, "sums")).to_dict()
    assert more["delivers_if_only_sums_are_seen"]["epsilon"] == 3.0
    run = {"iota": Printed("log(2)", "Line 1", "log(3)")}
    known = replace(PRESET, constants=run, delivers=Delivered(None, 1.0, "why", 31_255)).to_dict()
    assert known["constants"] == {"iota": ["log(2)", "Line 1", "log(3)"]}
    assert known["delivers"]["refuted_from"] == 31_255
