"""The plain path of a plan: release, or add."""

import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.auditing.neighbours import everything, opposites
from discreet.privacy.auditing.paths import main_path
from discreet.privacy.auditing.probes import PresetSampler
from helpers.auditing import batch_of

SHAPE = Shape(states=2, actions=2, horizon=1)


@pytest.mark.parametrize("users", [1, 4])
@pytest.mark.parametrize("trust", [Central(1), Shuffle(2, 1e-3, mechanism="bits")], ids=repr)
def test_batches_are_released(trust, users):
    plan = trust.calibrate(SHAPE)
    path = main_path(plan, users)
    assert (path.name, path.kind) == ("release", "batch")
    usual, _ = opposites(SHAPE)
    by_hand = plan.release(batch_of(usual, users, SHAPE), sampler=PresetSampler.still())
    assert np.array_equal(path.base(PresetSampler.still()), everything(by_hand))


def test_streams_are_added_to_from_beginning_to_end():
    plan = Central(1).calibrate(SHAPE, schedule="continual", episodes=5)
    path = main_path(plan)
    assert (path.name, path.kind, path.releases) == ("add", "continual", 5)


def test_streams_that_randomise_have_no_plain_path():
    plan = Local(1, mechanism="one-step").calibrate(SHAPE, schedule="continual", episodes=2)
    with pytest.raises(UnsupportedError, match="instead of adding noise"):
        main_path(plan)
