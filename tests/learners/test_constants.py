"""The table of constants: complete, consistent, and every wrong setting gets one sentence."""

import pytest

from discreet.errors import DiscreetError
from discreet.learners.constants import CONSTANTS, resolve

pytestmark = pytest.mark.core


@pytest.mark.parametrize("learner", CONSTANTS)
def test_practical_constants_only_override_settings_that_exist(learner):
    table = CONSTANTS[learner]
    assert set(table["practical"]) <= set(table["theory"])
    for constants in ("theory", "practical"):
        chosen = resolve(learner, {"constants": constants})
        assert set(chosen) == {"constants", *table["theory"]}
        assert chosen["constants"] == constants


@pytest.mark.parametrize("learner", CONSTANTS)
def test_practical_multipliers_never_exceed_the_printed_ones(learner):
    """Multipliers shrink what the papers print; only the step size of mirror ascent grows."""
    for name, value in CONSTANTS[learner]["practical"].items():
        if name in ("bonus_scale", "error_scale") or (
            name == "privacy_scale" and learner != "ldp-psrl"  # printed LDP-PSRL ignores the noise
        ):
            assert 0 < value <= CONSTANTS[learner]["theory"][name]


def test_practical_is_the_default_and_a_setting_overrides_it():
    assert resolve("pucb", {})["constants"] == "practical"
    assert resolve("pucb", {"error_scale": 0.7})["error_scale"] == 0.7
    assert resolve("pucb", {"error_scale": 0.7})["cap"] == "remaining"


@pytest.mark.parametrize(
    ("learner", "settings", "words"),
    [
        ("pucb", {"constants": "papers"}, "constants"),
        ("pucb", {"bonus_scal": 1.0}, "bonus_scale"),
        ("psrl", {"bonus_scale": 1.0}, "bonus_scale"),
        ("pucb", {"bonus_scale": -0.1}, "bonus_scale >= 0"),
        ("pucb", {"privacy_scale": "much"}, "privacy_scale"),
        ("pucb", {"failure": 0.0}, "failure"),
        ("pucb", {"failure": 1.5}, "failure"),
        ("ldp-obi", {"alpha": 0.0}, "alpha"),
        ("psrl", {"prior": -1.0}, "prior"),
        ("dp-ucbvi", {"cap": "none"}, "cap"),
        ("dp-ucbvi", {"terms": ("variance", "luck")}, "luck"),
        ("dp-ucbvi", {"clip": "yes"}, "clip to be True or False"),
        ("dp-ucbvi", {"stationary": None}, "stationary to be True or False"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(learner, settings, words):
    with pytest.raises(DiscreetError, match=words) as caught:
        resolve(learner, settings)
    assert "\n" not in str(caught.value)
