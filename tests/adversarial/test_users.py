"""Simulated users with adversarial losses: what they report, and what of it is public."""

import numpy as np
import pytest

from discreet import Central, NoPrivacy
from discreet._seeds import RunSeeds
from discreet.adversarial.losses import stochastic_losses
from discreet.adversarial.mechanism import LayeredSize, calibrate_layered
from discreet.adversarial.noise import LOSS_UNITS
from discreet.adversarial.world import AdversarialSettings, World, add_layered_user
from discreet.mdp import RiverSwim
from discreet.mdp.layered import LayeredMDP

MDP = LayeredMDP.from_tabular(RiverSwim(states=3, horizon=3))
RECORD = stochastic_losses(MDP, 20, seed=1, noisy=False)
LOSSES = RECORD.block(0, 20)
UNIFORM = np.full(MDP.shape.visits, 1 / MDP.shape.actions)


def played(trust, feedback, centred=False):
    mechanism = calibrate_layered(
        trust, LayeredSize.of(MDP), 20, feedback=feedback, centred_losses=centred
    )
    world = World(MDP, RECORD, mechanism, RunSeeds(4))
    [(_, episodes)] = world.blocks(AdversarialSettings(), 1.0)
    for k in range(20):
        add_layered_user(episodes.users, k, UNIFORM)
    return episodes.users


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_public_is_raw_plus_noise(feedback):
    users = played(Central(1, 1e-6), feedback)
    for name in ("transitions", "visits"):
        raw, noise = getattr(users.raw, name), getattr(users.noise, name)[-1]
        assert np.array_equal(getattr(users.public, name), raw + noise)
        assert np.abs(noise).max() > 0
    assert users.raw.visits.sum() == 20 * MDP.horizon


def test_without_privacy_the_counts_are_public():
    users = played(NoPrivacy(), "full")
    assert np.array_equal(users.public.visits, users.raw.visits)
    np.testing.assert_allclose(users.public.losses, LOSSES.sum(axis=0))


@pytest.mark.parametrize(("centred", "shift"), [(False, 0.0), (True, 0.5)])
def test_bandit_users_report_the_losses_of_their_path(centred, shift):
    users = played(NoPrivacy(), "bandit", centred)
    expected = np.zeros(MDP.shape.visits)
    for h, (x, a) in enumerate(users.path):
        expected[h, x, a] = LOSSES[-1, h, x, a] - shift
    np.testing.assert_allclose(users.public.losses, expected)
    assert (users.public.losses != 0).sum() == MDP.horizon


def test_private_losses_are_rounded_to_units_and_others_are_not():
    assert np.array_equal(played(NoPrivacy(), "full").reported, LOSSES)
    reported = played(Central(1, 1e-6), "full").reported
    assert np.array_equal(reported * LOSS_UNITS, np.rint(reported * LOSS_UNITS))
    assert np.abs(reported - LOSSES).max() <= 0.5 / LOSS_UNITS


def test_padding_stays_empty():
    users = played(Central(1, 1e-6), "full")
    absent = ~np.asarray(MDP.present)
    assert not users.public.visits[absent].any()
