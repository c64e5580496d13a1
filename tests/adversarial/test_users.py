"""Simulated users with adversarial losses: what they report, and what of it is public."""

import numpy as np
import pytest

from discreet import Central, NoPrivacy
from discreet._seeds import RunSeeds
from discreet.adversarial.layered import LayeredMDP
from discreet.adversarial.mechanism import LayeredSize, calibrate_layered
from discreet.adversarial.noise import LOSS_UNITS
from discreet.adversarial.users import SimulatedLayers, add_layered_user
from discreet.mdp import RiverSwim

MDP = LayeredMDP.from_tabular(RiverSwim(states=3, horizon=3))
LOSSES = np.random.default_rng(1).random((20, *MDP.shape.visits))
UNIFORM = np.full(MDP.shape.visits, 1 / MDP.shape.actions)


def support(trust, feedback, centred=False):
    plan = calibrate_layered(
        trust, LayeredSize.of(MDP), 20, feedback=feedback, centred_losses=centred
    )
    users = SimulatedLayers(MDP, plan, RunSeeds(4), centred=centred).users(LOSSES)
    for k in range(20):
        add_layered_user(users, k, UNIFORM)
    return users


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_public_is_raw_plus_noise(feedback):
    users = support(Central(1, 1e-6), feedback)
    for name in ("transitions", "visits"):
        raw, noise = getattr(users.raw, name), getattr(users.noise, name)[-1]
        assert np.array_equal(getattr(users.public, name), raw + noise)
        assert np.abs(noise).max() > 0
    assert users.raw.visits.sum() == 20 * MDP.horizon


def test_without_privacy_the_counts_are_public():
    users = support(NoPrivacy(), "full")
    assert np.array_equal(users.public.visits, users.raw.visits)
    np.testing.assert_allclose(users.public.losses, LOSSES.sum(axis=0))


@pytest.mark.parametrize(("centred", "shift"), [(False, 0.0), (True, 0.5)])
def test_bandit_users_report_the_losses_of_their_path(centred, shift):
    users = support(NoPrivacy(), "bandit", centred)
    expected = np.zeros(MDP.shape.visits)
    for h, (x, a) in enumerate(users.path):
        expected[h, x, a] = LOSSES[-1, h, x, a] - shift
    np.testing.assert_allclose(users.public.losses, expected)
    assert (users.public.losses != 0).sum() == MDP.horizon


def test_private_losses_are_rounded_to_units_and_others_are_not():
    assert np.array_equal(support(NoPrivacy(), "full").reported, LOSSES)
    reported = support(Central(1, 1e-6), "full").reported
    assert np.array_equal(reported * LOSS_UNITS, np.rint(reported * LOSS_UNITS))
    assert np.abs(reported - LOSSES).max() <= 0.5 / LOSS_UNITS


def test_padding_stays_empty():
    users = support(Central(1, 1e-6), "full")
    absent = ~np.asarray(MDP.present)
    assert not users.public.visits[absent].any()
