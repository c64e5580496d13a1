"""Streams of named vectors: dense losses and observed losses."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Central, Local
from discreet.privacy.vectors import calibrate_vectors, round_to_bits
from helpers.sampling import sampler

SIZES = {"counts": 3, "losses": 8}


@pytest.mark.parametrize(
    "trust",
    [
        Central(1),
        Central(1, 1e-6),
        Central(1, mechanism="tree-laplace"),
        Local(1, mechanism="laplace"),
        Local(1, 1e-6, mechanism="gaussian"),
    ],
)
def test_add_is_totals_plus_noise(trust):
    mechanism = calibrate_vectors(
        trust, SIZES, Sensitivity(units=22, pile=2, horizon=2), episodes=6
    )
    noise = mechanism.open(sampler()).block(6)
    release = mechanism.open(sampler())
    for k in range(6):
        user = np.append(np.arange(3), np.ones(8, np.int64))
        out = mechanism.split(release.add(user) * mechanism.noise.unit)
        # The encoder of a Toeplitz stream is rounded: off by a 1e-7th of the counts, on the grid.
        close = {"rtol": 0, "atol": 2 * mechanism.noise.unit if mechanism.noise.unit < 1 else 0}
        assert np.allclose(out["counts"], (k + 1) * np.arange(3) + noise[k, :3], **close)
        assert np.allclose(out["losses"], k + 1 + noise[k, 3:], **close)


def test_noise_follows_the_reach():
    dense = calibrate_vectors(Central(2), SIZES, Sensitivity(units=24), episodes=8)
    assert dense.noise.distribution.scale == 24 / 2  # one level
    gauss = [
        calibrate_vectors(
            Local(1, 1e-6, mechanism="gaussian"), SIZES, Sensitivity(units=u), episodes=8
        )
        for u in (12, 48)
    ]
    ratio = gauss[1].noise.distribution.sigma / gauss[0].noise.distribution.sigma
    assert ratio == pytest.approx(2, rel=1e-3)


def test_refusals():
    with pytest.raises(UnsupportedError, match="laplace"):
        calibrate_vectors(Local(1, mechanism="one-step"), SIZES, Sensitivity(units=4), episodes=3)
    with pytest.raises(InvalidInputError, match=r"\[0, 1\]"):
        round_to_bits(np.array([1.2]), sampler())


def test_rounding_is_unbiased():
    bits = round_to_bits(np.full(4000, 0.3), sampler(1))
    assert set(bits) == {0, 1}
    assert abs(bits.mean() - 0.3) < 6 * math.sqrt(0.21 / 4000)
