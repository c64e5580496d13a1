"""Evidence: what is true is certified and not contradicted, what is false is."""

from dataclasses import replace

import pytest

import discreet
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.noise import Gaussian
from discreet.study.dossier import evidence
from discreet.study.dossier.evidence import examined, proofs

SHAPE = Shape(states=2, actions=2, horizon=2)
TRUSTS = {
    "central": discreet.Central(1, 1e-6),
    "shuffle": discreet.Shuffle(1, 1e-6),
    "local": discreet.Local(1),
}


def quiet(_):
    pass


@pytest.mark.parametrize("trust", TRUSTS)
def test_batches_of_every_trust_model(trust):
    plan = TRUSTS[trust].calibrate(SHAPE)
    (proof,) = proofs(plan, [100], quiet)
    assert proof.text
    assert "is proven" in proof.sentence
    found = examined(plan, trust, quiet)
    assert found.holds(1.0)
    assert found.rows
    assert found.name.startswith(f"{trust}/")
    assert (found.exact is None) == (trust == "local")


def test_too_little_noise_is_convicted():
    plan = TRUSTS["central"].calibrate(SHAPE)
    weak = replace(plan, noise=Gaussian(plan.noise.sigma / 2))
    found = examined(weak, "central", quiet)
    assert found.exact > 1.9
    assert not found.holds(1.0)
    assert not proofs(weak, [], quiet)[0].text
    hopeless = replace(plan, noise=Gaussian(plan.noise.sigma / 40))
    assert evidence._attack(hopeless) > 1.5


def test_noise_that_is_missing_is_convicted():
    plan = TRUSTS["central"].calibrate(SHAPE)
    assert evidence._attack(replace(plan, noise=Gaussian(1e-9))) == float("inf")


def test_large_shapes_are_not_listed_and_say_so(monkeypatch):
    monkeypatch.setattr(evidence, "_MOST_CELLS", 3)
    found = examined(TRUSTS["central"].calibrate(SHAPE), "central", quiet)
    assert found.exact is None
    assert "counters are too many" in found.unlisted


def test_shuffled_bits_are_certified_batch_by_batch():
    plan = discreet.Shuffle(1, 1e-6, mechanism="bits").calibrate(Shape(1, 2, 1))
    made = proofs(plan, [50, 50, 60], quiet)
    assert [proof.users for proof in made] == [60, 50]


def test_what_cannot_be_certified_is_said():
    with pytest.warns(discreet.errors.DiscreetWarning):
        plan = discreet.Shuffle(1, 1e-6, calibration="paper").calibrate(SHAPE)
    (proof,) = proofs(plan, [100], quiet)
    assert not proof.text
    assert proof.sentence.startswith("No certificate: ")
    assert proofs(discreet.NoPrivacy().calibrate(SHAPE), [], quiet)[0].text == ""
