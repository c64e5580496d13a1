"""Noise for real people is proven to be enough before the first release, and before any charge."""

import numpy as np
import pytest

import discreet
from discreet import Central, Local, Shuffle, evaluate_policy, fit
from discreet.mdp import Shape, Trajectories
from discreet.privacy.accounting import closed_forms
from discreet.privacy.certificates.document import UNPROVEN, CertificateError, proven
from discreet.privacy.mechanisms import histogram, one_shot
from discreet.study.study import start_study

SHAPE = Shape(2, 2, 2)
GAUSSIAN, LAPLACE = Central(1, 1e-6, mechanism="gaussian"), Central(1)
TRUST = {
    "central": (GAUSSIAN, one_shot, "discrete_gaussian_sigma"),
    "central pure": (LAPLACE, one_shot, "discrete_laplace_scale"),
    "shuffle": (Shuffle(2, 1e-4), histogram, "groups_mean"),
    "local": (Local(2), closed_forms, "flip_probability"),
}
PEOPLE = Trajectories(np.zeros((3, 3), int), np.ones((3, 2), int), np.ones((3, 2)))


def begun(folder, trust, **options):
    return start_study(
        folder / "study.db",
        learner="trial",
        trust=trust,
        states=2,
        actions=2,
        horizon=2,
        episodes=300,
        **options,
    )


def weaken(monkeypatch, home, name):
    enough = getattr(home, name)
    monkeypatch.setattr(home, name, lambda *args, **options: enough(*args, **options) * 9 / 10)


@pytest.mark.parametrize("trust", TRUST)
def test_a_study_of_real_people_starts_with_proven_noise(tmp_path, trust):
    assert proven(begun(tmp_path, TRUST[trust][0]).mechanism)


@pytest.mark.parametrize("trust", TRUST)
def test_a_study_with_too_little_noise_does_not_start(tmp_path, monkeypatch, trust):
    weaken(monkeypatch, *TRUST[trust][1:])
    with pytest.raises(CertificateError, match=r"Nothing was released\. Not certified: the best"):
        begun(tmp_path, TRUST[trust][0])
    assert not list(tmp_path.iterdir())
    assert begun(tmp_path, TRUST[trust][0], sampler="simulation", seed=0)  # protects nobody


DOORS = {
    "fit": lambda trust, **options: fit(PEOPLE, trust, shape=SHAPE, **options),
    "evaluate_policy": lambda trust, **options: evaluate_policy(
        PEOPLE, np.zeros((2, 2), int), trust, shape=SHAPE, **options
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("epsilon", [1.25, 1.5])
def test_too_little_noise_charges_nobody(tmp_path, monkeypatch, door, epsilon):
    trust = Central(epsilon, 1e-6, mechanism="gaussian")
    weaken(monkeypatch, one_shot, "discrete_gaussian_sigma")
    ledger = {"users": ["ann", "bob", "eve"], "ledger": tmp_path / "people.ledger"}
    with pytest.raises(CertificateError, match="Nothing was released"):
        DOORS[door](trust, **ledger)
    assert not list(tmp_path.iterdir())
    DOORS[door](trust, sampler="simulation", seed=0)


@pytest.mark.parametrize("door", DOORS)
def test_what_has_no_certificate_says_so(door):
    assert UNPROVEN not in DOORS[door](GAUSSIAN).guarantee.assumptions
    twice = Central(1, 1e-6, mechanism="gaussian", participations=2)
    found = DOORS[door](twice, users=["ann", "ann", "eve"])
    assert UNPROVEN in found.guarantee.assumptions
    assert not proven(discreet.NoPrivacy().calibrate(SHAPE))
