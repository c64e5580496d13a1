"""Paths of layered plans: counts and losses of a user, replaced at every place."""

import numpy as np
import pytest

from discreet.adversarial.mechanism import LayeredSize, calibrate_layered
from discreet.adversarial.noise import LOSS_UNITS
from discreet.adversarial.world import LayeredCounters
from discreet.auditing import check_mechanism
from discreet.auditing.additive import probe
from discreet.auditing.cases import entries
from discreet.auditing.layered import (
    NAME,
    layered_cases,
    layered_path,
    layered_user,
    published,
)
from discreet.auditing.probes import PresetSampler
from discreet.privacy import Central, NoPrivacy

SIZE = LayeredSize(widths=(1, 2, 1), actions=2)
TRUST = Central(1, mechanism="tree-laplace")


def mechanism_of(feedback="full", size=SIZE, trust=TRUST, episodes=3, **options):
    return calibrate_layered(trust, size, episodes, feedback=feedback, **options)


def still(run):
    return run(PresetSampler.still())


def test_one_path_with_every_user_replaced():
    path = layered_path(mechanism_of(), watch=2)
    assert (path.name, path.kind, path.releases, path.note) == (NAME, "layered", 2, "full")
    assert path.blocks
    assert list(path.neighbours) == [
        f"{label}, user {place}"
        for label in ("everything", "losses only", "last step only")
        for place in (1, 2)
    ]


def test_no_more_releases_than_episodes():
    assert layered_path(mechanism_of(episodes=3), watch=9).releases == 3
    assert layered_path(mechanism_of(episodes=9)).releases == 4


@pytest.mark.parametrize("moved", [set(), {0}, {1}, {0, 1}])
def test_a_user_visits_one_pair_per_step(moved):
    user = layered_user(mechanism_of("bandit"), moved, 1.0)
    assert user.visits.sum() == 2
    assert user.transitions.sum() == 2
    for h in range(2):
        assert user.visits[h, 0, 1 if h in moved else 0] == 1
    assert np.array_equal(user.transitions.sum(axis=-1), user.visits)
    assert np.array_equal(user.losses, user.visits)


def test_with_full_information_every_pair_has_a_loss():
    user = layered_user(mechanism_of(), set(), 1.0)
    assert user.losses[0, 0].tolist() == [1, 1]
    assert user.losses[0, 1].tolist() == [0, 0]  # the first layer has one state
    assert user.losses[1].tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(("centred", "low", "high"), [(False, 0.0, 1.0), (True, -0.5, 0.5)])
def test_losses_move_by_one_whole(centred, low, high):
    mechanism = mechanism_of("bandit", centred_losses=centred)
    path = layered_path(mechanism, centred=centred)
    gap = still(path.neighbours["losses only, user 1"]) - still(path.base)
    assert set(np.unique(gap)) == {0.0, LOSS_UNITS * (low - high)}
    assert np.count_nonzero(gap) == 2  # bandit losses are of one episode: two steps, once
    assert path.note == ("bandit, centred" if centred else "bandit")


def test_full_losses_are_summed_over_episodes():
    path = layered_path(mechanism_of("full"), watch=3)
    gap = (still(path.neighbours["losses only, user 2"]) - still(path.base)).reshape(3, -1)
    assert [np.count_nonzero(row) for row in gap] == [0, 6, 6]
    assert set(np.unique(gap)) == {0.0, -LOSS_UNITS}


def test_public_losses_are_not_published_as_private():
    secret, public = (mechanism_of("full", public_losses=p) for p in (False, True))
    sizes = [still(layered_path(mechanism, watch=2).base).size for mechanism in (secret, public)]
    assert sizes[0] - sizes[1] == 2 * np.prod(SIZE.padded)
    path = layered_path(public)
    gap = still(path.neighbours["losses only, user 1"]) - still(path.base)
    assert not gap.any()


def test_counts_are_running_sums():
    mechanism = mechanism_of("bandit")
    usual, other = (layered_user(mechanism, moved, 1.0) for moved in (set(), {0, 1}))
    seen = published(mechanism, [usual, other, usual], PresetSampler.still()).reshape(3, -1)
    size = usual.transitions.size
    running = np.cumsum([u.transitions.ravel() for u in (usual, other, usual)], axis=0)
    assert np.array_equal(seen[:, :size], running)


def test_losses_are_rounded_to_units():
    mechanism = mechanism_of("bandit")
    plain = layered_user(mechanism, set(), 1.0)
    odd = LayeredCounters(plain.transitions, plain.visits, plain.losses / 3)
    seen = published(mechanism, [odd], PresetSampler.still())[-np.prod(SIZE.padded) :]
    assert set(np.unique(seen)) == {0.0, float(round(LOSS_UNITS / 3))}


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_what_is_delivered_is_what_is_guaranteed(feedback):
    tiny = LayeredSize(widths=(1, 1), actions=2)
    path = layered_path(mechanism_of(feedback, size=tiny), watch=2)
    assert 0.9 < probe(path).epsilon(0.0) <= 1 + 1e-7


def test_without_privacy_everything_is_seen():
    mechanism = mechanism_of("bandit", trust=NoPrivacy())
    sampler = PresetSampler.still()
    path = layered_path(mechanism)
    path.base(sampler)
    assert sampler.noises == []


def test_every_mechanism_that_serves_losses_is_audited():
    known = list(entries())
    found = list(layered_cases(known))
    adding = [e for e in known if e.adds_noise and e.spec.losses]
    assert list(dict.fromkeys(case.mechanism for case in found)) == [e.name for e in adding]
    for entry in adding:
        notes = [case.path for case in found if case.mechanism == entry.name]
        assert notes[:2] == [f"{NAME} (full)", f"{NAME} (bandit)"]
        centred = entry.mechanism in ("toeplitz", "laplace")
        assert notes[2:] == [f"{NAME} (bandit, centred)"] * centred
    assert all(case.paths[0].releases == 4 for case in found)


def test_a_layered_mechanism_is_checked_like_any_other():
    mechanism = mechanism_of("bandit", size=LayeredSize(widths=(1, 1), actions=2))
    assert check_mechanism(mechanism).ok
