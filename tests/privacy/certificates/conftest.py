"""Balls of full precision, and a small certificate of every distribution, made once."""

import json
from fractions import Fraction

import pytest

from helpers.certificates import release


@pytest.fixture(scope="module")
def sharp_balls():
    """Balls of the precision that the library uses, also where a test reads their ends."""
    flint = pytest.importorskip("flint")
    from discreet.privacy.certificates.arithmetic import PRECISION

    before, flint.ctx.prec = flint.ctx.prec, PRECISION
    yield
    flint.ctx.prec = before


@pytest.fixture(scope="session")
def made():
    """Distribution name -> content of a certificate that holds, as it would be read from a file."""
    pytest.importorskip("flint")
    from discreet.privacy.certificates import distributions, verify
    from discreet.privacy.certificates.document import Claim, certify_claim

    half, million = Fraction(1, 2), Fraction(1, 10**6)
    one = {"horizon": 1, "statistics": ["visits"]}
    of = {
        "binomial": release("shuffle batch", "bits", users=100, **one),
        "poisson": release("shuffle batch", "histogram", **one),
        "histogram": release(
            "shuffle batch",
            "histogram",
            users=10,
            horizon=1,
            states=3,
            statistics=["transitions", "rewards"],
        ),
        "table": release("local batch", "bounded", **one),
        "discrete-gaussian": release("central batch", "gaussian", horizon=2),
        "piled-gaussian": release("local continual", "gaussian", horizon=2, stationary=True),
        "adaptive-gaussian": release(
            "local continual",
            "gaussian",
            horizon=4,
            stationary=True,
            participations=2,
            statistics=["visits"],
        ),
        "gaussian-grid": release("central continual", "toeplitz"),
        "layered-gaussian": release("local layered continual", "gaussian", actions=1),
        "discrete-laplace": release("central batch", "laplace"),
        "randomized-response": release("local continual", "randomized-response", **one),
        "one-step": release("local batch", "split"),
    }
    some = {
        "binomial": (
            distributions.BinomialBits(trials=200, probability=half, ups=1, downs=1),
            1,
            million,
        ),
        "poisson": (distributions.PoissonNoise(mean=Fraction(50), ups=1, downs=1), 1, million),
        "histogram": (
            distributions.HistogramNoise(kinds=((100, half, 1), (60, Fraction(1, 3), 1))),
            2,
            Fraction(1, 1000),
        ),
        "table": (
            distributions.TableNoise(weights=(1, 4, 9, 4, 1), ups=1, downs=1),
            2,
            Fraction(1, 4),
        ),
        "discrete-gaussian": (
            distributions.GaussianMoves(sigma=Fraction(15), times=12),
            1,
            million,
        ),
        "piled-gaussian": (
            distributions.PiledGaussian(sigma=Fraction(21), total=12, largest=2),
            1,
            million,
        ),
        "adaptive-gaussian": (
            distributions.AdaptiveGaussian(sigma=Fraction(38), squares=64),
            1,
            million,
        ),
        "gaussian-grid": (
            distributions.GaussianGrid(
                sigma=Fraction(26 * 2**24),
                length=100,
                encoder=(2**24,) + (0,) * 99,
                columns=(1,) * 100,
                squares=36,
                cells=36,
            ),
            1,
            million,
        ),
        "layered-gaussian": (
            distributions.LayeredGaussian(
                count_sigma=Fraction(1),
                counts=4,
                loss_sigma=Fraction(1024),
                loss_shift=1024,
                losses=1,
            ),
            10,
            Fraction(1, 100),
        ),
        "discrete-laplace": (
            distributions.LaplaceMoves(scale=Fraction(36), units=36),
            1,
            Fraction(0),
        ),
        "randomized-response": (
            distributions.FlippedBits(flip=Fraction(1, 3), units=2),
            2,
            Fraction(0),
        ),
        "one-step": (distributions.OneStep(keep=half, flip=Fraction(27, 100)), 1, Fraction(0)),
    }
    assert set(some) == set(distributions.NOISES)
    out = {}
    for name, (noise, epsilon, delta) in some.items():
        claim = Claim(noise=noise, epsilon=Fraction(epsilon), delta=delta, release=of[name])
        certificate = certify_claim(claim, check=False)
        assert certificate.holds, name
        assert noise.moves() == verify.moves_of(of[name])[name]
        out[name] = json.loads(json.dumps(certificate.to_dict()))
    return out
