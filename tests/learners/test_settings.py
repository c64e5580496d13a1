"""Settings of every learner: complete, consistent, and every wrong one gets one sentence."""

import tomllib
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import ClassVar

import pytest

from discreet._settings import to_toml as dumps
from discreet.errors import DiscreetError, UnknownNameError
from discreet.learners.registry import get_learner, learner_names
from discreet.learners.settings import OwnSettings, Settings, failure_probability, not_negative

pytestmark = pytest.mark.core

LEARNERS = learner_names()
PRINTED = [
    name for name in LEARNERS if not issubclass(get_learner(name).settings_type, OwnSettings)
]


def kind(learner):
    found = get_learner(learner).settings_type
    assert found is not None
    return found


@pytest.mark.parametrize("learner", LEARNERS)
def test_practical_constants_only_override_settings_that_exist(learner):
    assert set(kind(learner).PRACTICAL) <= {item.name for item in fields(kind(learner))}


@pytest.mark.parametrize("learner", PRINTED)
def test_both_sets_of_constants_say_which_they_are_and_differ_in_nothing_else(learner):
    theory, practical = vars(kind(learner).theory()), vars(kind(learner).practical())
    assert theory["constants"] == "theory"
    assert practical == theory | kind(learner).PRACTICAL | {"constants": "practical"}


@pytest.mark.parametrize("learner", PRINTED)
def test_practical_multipliers_never_exceed_the_printed_ones(learner):
    """Multipliers shrink what the papers print; only step sizes and loss shares grow."""
    theory = kind(learner).theory()
    for name, value in kind(learner).PRACTICAL.items():
        if name in ("bonus_scale", "error_scale", "confidence", "limit") or (
            name == "privacy_scale" and learner != "ldp-psrl"  # printed LDP-PSRL ignores the noise
        ):
            assert 0 < value <= getattr(theory, name)


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_a_run_uses_unless_asked(learner):
    """One default for all: practical constants."""
    assert kind(learner).choose({}).constants == "practical"


def test_a_setting_that_is_given_wins_over_practical_constants():
    chosen = kind("pucb").choose({"error_scale": 0.7})
    assert (chosen.constants, chosen.error_scale, chosen.cap) == ("practical", 0.7, "remaining")


@pytest.mark.parametrize("learner", LEARNERS)
def test_toml_and_back(learner):
    chosen = kind(learner).practical()
    written = dumps({"settings": chosen.to_toml()})
    assert kind(learner).choose(tomllib.loads(written)["settings"]) == chosen


@pytest.mark.parametrize("learner", LEARNERS)
def test_settings_cannot_be_changed(learner):
    with pytest.raises(FrozenInstanceError):
        kind(learner).practical().constants = "theory"


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_misspelt_setting_gets_a_suggestion(learner):
    name = next(item.name for item in fields(kind(learner)) if item.name != "constants")
    with pytest.raises(UnknownNameError, match=f"did you mean '{name}'"):
        kind(learner).choose({name[:-1]: 1.0})


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
        ("private-ucb-po", {"rate_scale": -1.0}, "rate_scale >= 0"),
        ("ldp-obi", {"alpha": 0.0}, "alpha"),
        ("ldp-psrl", {"privacy_scale": -1.0}, "privacy_scale >= 0"),
        ("psrl", {"prior": -1.0}, "prior"),
        ("ucbvi", {"bonus": "luck"}, "bonus to be one of"),
        ("dp-ucbvi", {"cap": "none"}, "cap"),
        ("dp-ucbvi", {"terms": ("variance", "luck")}, "luck"),
        ("dp-ucbvi", {"terms": "variance"}, "terms to be a list"),
        ("dp-ucbvi", {"clip": "yes"}, "clip to be True or False"),
        ("dp-ucbvi", {"stationary": "yes"}, "stationary to be True or False"),
        ("flow-ucb", {"constants": "theory"}, "no bound is proven"),
        ("explore-then-commit", {"constants": "theory"}, "no printed constants"),
        ("explore-then-commit", {"rounds": 0}, "rounds"),
        ("explore-then-commit", {"length": 0}, "length"),
        ("explore-then-commit", {"length": 2.5}, "length to be an integer, got"),
        ("explore-then-commit", {"exploration": "greedy"}, "exploration"),
        ("flow-ucb", {"batches": 1}, "batches >= 2"),
        ("flow-ucb", {"confidence": -1.0}, "confidence > 0"),
        ("sdp-pe", {"fine": "all"}, "fine to be one of"),
        ("private-uc-o-reps", {"rate": 0.0}, "rate > 0"),
        ("private-uc-o-reps", {"public_losses": 1}, "public_losses to be True or False"),
        ("private-uob-lbps", {"loss_share": 1.0}, "loss_share < 1"),
        ("private-uob-lbps", {"loss_estimator": "best"}, "loss_estimator to be one of"),
    ],
)
def test_a_wrong_setting_gets_one_sentence(learner, settings, words):
    with pytest.raises(DiscreetError, match=words) as caught:
        kind(learner).choose(settings, learner=learner)
    assert "\n" not in str(caught.value)


def test_settings_of_ones_own():
    @dataclass(frozen=True, kw_only=True)
    class Own(Settings):
        width: float = 1.0
        steps: int = 3

        PRACTICAL: ClassVar = {"width": 0.1}

        def check(self):
            not_negative(width=self.width)

    assert Own.choose({}) == Own(constants="practical", width=0.1)
    assert Own.theory(steps=4).to_toml() == {"constants": "theory", "width": 1.0, "steps": 4}
    with pytest.raises(DiscreetError, match="steps to be an integer"):
        Own(steps=0.5)
    with pytest.raises(DiscreetError, match="width >= 0"):
        Own.practical(width=-1.0)


def test_a_failure_probability_is_above_zero():
    failure_probability(1.0)
    with pytest.raises(DiscreetError, match="failure > 0"):
        failure_probability(0.0)
