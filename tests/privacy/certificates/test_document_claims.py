"""From plans to distributions: every mechanism is read as it is, or said not to be covered."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from discreet.adversarial.mechanism import LayeredSize, calibrate_layered
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, NoPrivacy, Shuffle
from discreet.privacy.certificates import certify, verify
from discreet.privacy.certificates.document import claim_of, claimed
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.mechanisms.noise import Bounded, NoNoise
from discreet.privacy.mechanisms.registry import everything
from discreet.privacy.sensitivity import STATISTICS
from helpers.calibrating import calibrated
from helpers.properties import given, st

SHAPE = Shape(states=2, actions=2, horizon=3)
SIZE = LayeredSize(widths=(1, 1, 1), actions=2)
TRUST = {"central": Central, "local": Local, "shuffle": Shuffle}

COVERED = {
    ("central", "batch", "gaussian"): "discrete-gaussian",
    ("central", "batch", "laplace"): "discrete-laplace",
    ("central", "continual", "toeplitz"): "gaussian-grid",
    ("central", "continual", "tree-signed"): "discrete-laplace",
    ("central", "continual", "tree-laplace"): "discrete-laplace",
    ("local", "batch", "split"): "one-step",
    ("local", "continual", "laplace"): "discrete-laplace",
    ("local", "continual", "gaussian"): "discrete-gaussian",
    ("local", "continual", "randomized-response"): "randomized-response",
    ("local", "continual", "one-step"): "one-step",
    ("shuffle", "batch", "bits"): "binomial",
    ("shuffle", "batch", "histogram"): "histogram",
}
"""What certificates say of each mechanism: its distribution."""


def noise_of(mechanism, **users):
    return claim_of(mechanism, **users).noise


def plan_of(trust, schedule, name, *, delta=1e-6, **options):
    if schedule == "continual":
        options = {"schedule": "continual", "episodes": 5} | options
    return calibrated(TRUST[trust](epsilon=1, delta=delta, mechanism=name), SHAPE, **options)


@pytest.mark.parametrize("key", COVERED, ids="/".join)
def test_every_mechanism_has_its_distribution(key):
    pure = next(m.pure for m in everything() if (m.trust, m.schedule, m.name) == key)
    plan = plan_of(*key, delta=0 if pure else 1e-6)
    users = 50 if key[0] == "shuffle" else None
    claim = claim_of(plan, users=users)
    assert claim.noise["name"] == COVERED[key]
    assert (claim.epsilon, claim.delta) == (1, claimed(plan.guarantee.delta))
    assert claim.release["mechanism"] == key[2]
    assert verify.moves_of(claim.release)[COVERED[key]]


def moved(plan, **users):
    """How often the verifier says that one user moves a counter by one."""
    claim = claim_of(plan, **users)
    return [move["times"] for move in verify.moves_of(claim.release)[claim.noise["name"]]]


@pytest.mark.parametrize("statistics", [("visits",), ("transitions", "visits"), STATISTICS])
def test_moves_are_those_of_the_sensitivity_lemmas(statistics):
    """Two counters per step and statistic: one falls, one rises."""
    units = 2 * SHAPE.horizon * len(statistics)
    gauss = plan_of("central", "batch", "gaussian", statistics=statistics)
    laplace = plan_of("central", "batch", "laplace", delta=0, statistics=statistics)
    assert moved(gauss) == moved(laplace) == [units]
    assert gauss.sensitivity.cells == laplace.sensitivity.units == units
    bits = plan_of("shuffle", "batch", "bits", statistics=statistics)
    assert moved(bits, users=20) == [units // 2, units // 2]


def test_noise_is_read_to_the_last_bit():
    plan = plan_of("central", "batch", "gaussian")
    assert Fraction(noise_of(plan)["sigma"]) == Fraction(plan.noise.sigma)
    halved = dataclasses.replace(plan, noise=plan.noise.scaled(0.5))
    assert Fraction(noise_of(halved)["sigma"]) == Fraction(plan.noise.sigma / 2)


@pytest.mark.parametrize("episodes", [1, 2, 5, 8, 9, 100])
@pytest.mark.parametrize("mechanism", ["tree-signed", "tree-laplace"])
def test_a_user_is_in_one_node_of_every_level(mechanism, episodes):
    plan = plan_of("central", "continual", mechanism, delta=0, episodes=episodes)
    if mechanism == "tree-signed":
        levels = claim_of(plan).release["levels"]
        assert levels == plan.noise.shape.levels
        assert f"by a tree of {levels} levels" in verify.claim(certify(plan).to_dict())
    else:
        levels = max(1, (episodes - 1).bit_length())
    assert moved(plan) == [levels * 2 * SHAPE.horizon * 3]


def test_bounded_noise_is_its_table():
    plan = plan_of("local", "continual", "laplace", delta=0, statistics=("visits",))
    bounded = dataclasses.replace(plan.noise, distribution=Bounded(7))
    found = noise_of(dataclasses.replace(plan, noise=bounded))
    assert found == {"name": "table", "weights": Bounded(7).weights.tolist(), "draws": 1}


@pytest.mark.parametrize("users", [1, 7, 50])
def test_shuffled_bits_are_those_of_all_users(users):
    plan = plan_of("shuffle", "batch", "bits")
    noise, bits = noise_of(plan, users=users), plan.bits(users)
    assert noise["trials"] == users * bits.bits
    assert Fraction(noise["probability"]) == Fraction(bits.probability)


def test_who_is_not_honest_adds_no_noise():
    plan = Shuffle(epsilon=1, delta=1e-6, honest=0.5, mechanism="bits").calibrate(SHAPE)
    noise = noise_of(plan, users=50)
    assert noise["trials"] == 25 * plan.bits(50).bits
    assert claim_of(plan, users=50).release["honest"] == "1/2"


def test_flips_are_read_with_the_bits_that_change():
    plan = plan_of("local", "continual", "randomized-response", delta=0, statistics=("rewards",))
    assert Fraction(noise_of(plan)["flip"]) == Fraction(plan.flip)
    assert moved(plan) == [2 * SHAPE.horizon]


@pytest.mark.parametrize("episodes", [1, 2, 7])
def test_the_longest_column_of_a_factorisation(episodes):
    """Against the columns themselves: column i starts at release i."""
    plan = plan_of("central", "continual", "toeplitz", episodes=episodes, stationary=True)
    encoder, columns = plan.noise.factors.encoder, plan.noise.factors.columns
    squares = [
        sum((int(d) * int(c)) ** 2 for c in encoder[: episodes - i]) for i, d in enumerate(columns)
    ]
    claim = claim_of(plan)
    noise = claim.noise
    assert (noise["encoder"], noise["columns"]) == (encoder.tolist(), columns.tolist())
    assert verify.longest_column(noise["encoder"], noise["columns"]) == max(squares)
    assert max(squares) == plan.noise.factors.column_square() * 4**plan.noise.grid.bits
    assert (noise["length"], Fraction(noise["sigma"])) == (episodes, Fraction(plan.noise.steps))
    moves = {"squares": 6 * SHAPE.horizon * SHAPE.horizon, "cells": 6 * SHAPE.horizon}
    assert verify.moves_of(claim.release)["gaussian-grid"] == moves


def test_layered_counts_and_losses():
    plan = calibrate_layered(
        Local(epsilon=1, delta=1e-6, mechanism="gaussian"), SIZE, 4, feedback="bandit"
    )
    noise, release = noise_of(plan), claim_of(plan).release
    assert noise["name"] == "layered-gaussian"
    assert Fraction(noise["loss_sigma"]) == Fraction(plan.loss_noise.sigma)
    assert (release["schedule"], release["feedback"]) == ("layered continual", "bandit")
    assert (release["widths"], release["episodes"]) == ([1, 1, 1], 4)
    moves = {"counts": 4 * 2, "losses": 2 * 2, "loss_shift": 1024}
    assert verify.moves_of(release)["layered-gaussian"] == moves


def test_layered_losses_in_the_stream():
    plan = calibrate_layered(
        Local(epsilon=1, delta=1e-6, mechanism="gaussian"), SIZE, 4, feedback="full"
    )
    noise, moves = noise_of(plan), verify.moves_of(claim_of(plan).release)["layered-gaussian"]
    assert moves["losses"] == 4
    assert Fraction(noise["loss_sigma"]) == Fraction(noise["count_sigma"]) * 1024


def test_public_losses_are_no_part_of_the_distribution():
    plan = calibrate_layered(Central(epsilon=1), SIZE, 4, feedback="full", public_losses=True)
    levels = plan.noise.shape.levels
    scale = str(Fraction(plan.noise.distribution.scale))
    assert noise_of(plan) == {"name": "discrete-laplace", "scale": scale}
    assert moved(plan) == [levels * 8]
    assert claim_of(plan).release["levels"] == levels


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [("toeplitz", "Layered Toeplitz noise"), ("tree-laplace", "with Gaussian noise only")],
)
def test_layered_noise_that_is_not_covered(mechanism, message):
    delta = 0 if "laplace" in mechanism else 1e-6
    trust = Central(epsilon=1, delta=delta, mechanism=mechanism)
    with pytest.raises(UnsupportedError, match=message):
        noise_of(calibrate_layered(trust, SIZE, 4, feedback="full"))


def test_a_layered_plan_without_privacy_guarantees_nothing():
    plan = calibrate_layered(NoPrivacy(), SIZE, 4, feedback="full")
    with pytest.raises(UnsupportedError, match="guarantees nothing"):
        claim_of(plan)


def test_noise_of_unknown_kinds_is_refused():
    class Stranger(NoNoise):
        """Nobody knows it."""

        kind = "stranger"

    plan = plan_of("central", "batch", "gaussian")
    with pytest.raises(UnsupportedError, match="'stranger' is not covered"):
        noise_of(dataclasses.replace(plan, noise=Stranger()))


def test_a_mechanism_of_your_own_is_refused_by_name():
    plan = plan_of("central", "batch", "gaussian")

    class Mine(type(plan)):
        """Somebody else's noise."""

        certified = BatchMechanism.certified

    fields = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    spec = dataclasses.replace(plan.spec, name="mine")
    with pytest.raises(UnsupportedError, match="'mine' is not covered"):
        noise_of(Mine(**fields | {"spec": spec}))


@given(st.floats(min_value=1e-9, max_value=50))
def test_a_guarantee_is_read_as_the_smaller_number(value):
    found = claimed(value)
    assert found == min(Fraction(value), Fraction(repr(value)))


def test_what_a_claim_is_about():
    plan = plan_of("central", "continual", "toeplitz", stationary=True)
    release = claim_of(plan).release
    assert release["statistics"] == ["transitions", "visits", "rewards"]
    assert (release["states"], release["actions"], release["horizon"]) == (2, 2, 3)
    assert (release["episodes"], release["stationary"]) == (5, True)
    assert "honest" not in release and "users" not in release
    assert claim_of(plan_of("shuffle", "batch", "bits"), users=9).release["users"] == 9
    assert claim_of(plan_of("central", "batch", "gaussian"), users=9) == claim_of(
        plan_of("central", "batch", "gaussian")
    )


@pytest.mark.parametrize("users", [0, -3, 2.5, np.nan])
def test_batches_that_are_none(users):
    with pytest.raises(InvalidInputError, match="users"):
        claim_of(plan_of("shuffle", "batch", "bits"), users=users)


@pytest.mark.parametrize(("epsilon", "method"), [(1.0, "sum"), (4.0, "sum"), (40.0, "convolution")])
def test_batches_in_cells_are_certified_for_a_unit_out_and_in_of_every_group(epsilon, method):
    plan = Central(epsilon, 1e-6, mechanism="gaussian").calibrate(
        SHAPE, statistics=("transitions", "rewards"), last_transitions=False
    )
    found = certify(plan).to_dict()
    assert verify.File(found).moved == [{"shift": 1, "times": 10}]
    assert found["method"]["name"] == method
    recomputed = verify.check(found)
    assert Fraction("0.8e-6") < recomputed <= Fraction(found["bound"]) <= Fraction("1e-6")
    weaker = found | {
        "noise": found["noise"] | {"sigma": str(Fraction(plan.noise.sigma) * 98 / 100)}
    }
    weaker.pop("digest", None)
    with pytest.raises(verify.Refused):
        verify.check(weaker)


def test_centred_laplace_batches_are_pure():
    plan = Central(1).calibrate(
        SHAPE, statistics=("transitions", "rewards"), last_transitions=False
    )
    assert noise_of(plan) == {"name": "discrete-laplace", "scale": "10"}
    assert moved(plan) == [10]
    assert verify.check(certify(plan).to_dict()) == 0
