"""Balls of full precision, and a small certificate of every law, made once."""

import json
from fractions import Fraction

import pytest


@pytest.fixture(scope="module")
def sharp_balls():
    """Balls of the precision that the library uses, also where a test reads their ends."""
    flint = pytest.importorskip("flint")
    from discreet.privacy.certificates.balls import PRECISION

    before, flint.ctx.prec = flint.ctx.prec, PRECISION
    yield
    flint.ctx.prec = before


@pytest.fixture(scope="session")
def made():
    """Law name -> content of a certificate that holds, as it would be read from a file."""
    pytest.importorskip("flint")
    from discreet.privacy.certificates import laws
    from discreet.privacy.certificates.plans import Claim
    from discreet.privacy.certificates.run import certify_claim

    half, million = Fraction(1, 2), Fraction(1, 10**6)
    some = {
        "binomial": (laws.BinomialBits(trials=200, probability=half, ups=1, downs=1), 1, million),
        "poisson": (laws.PoissonNoise(mean=Fraction(50), ups=1, downs=1), 1, million),
        "classes": (
            laws.ClassNoise(kinds=((100, half, 1), (60, Fraction(1, 3), 1))),
            2,
            Fraction(1, 1000),
        ),
        "table": (laws.TableNoise(weights=(1, 4, 9, 4, 1), ups=1, downs=0), 2, Fraction(1, 10)),
        "discrete-gaussian": (laws.GaussianMoves(sigma=Fraction(15), times=12), 1, million),
        "piled-gaussian": (laws.PiledGaussian(sigma=Fraction(21), total=12, largest=2), 1, million),
        "gaussian-grid": (
            laws.GaussianGrid(
                sigma=Fraction(26 * 2**24),
                length=100,
                squared_norm=2**48,
                coefficients="0" * 64,
                squares=36,
                cells=36,
            ),
            1,
            million,
        ),
        "layered-gaussian": (
            laws.LayeredGaussian(
                count_sigma=Fraction(1),
                counts=2,
                loss_sigma=Fraction(1024),
                loss_shift=1024,
                losses=1,
            ),
            10,
            Fraction(1, 100),
        ),
        "discrete-laplace": (laws.LaplaceMoves(scale=Fraction(36), units=36), 1, Fraction(0)),
        "randomized-response": (laws.FlippedBits(flip=Fraction(1, 3), units=2), 2, Fraction(0)),
        "one-step": (laws.OneStep(keep=half, flip=Fraction(27, 100)), 1, Fraction(0)),
    }
    assert set(some) == set(laws.LAWS)
    out = {}
    for name, (law, epsilon, delta) in some.items():
        claim = Claim(law=law, epsilon=Fraction(epsilon), delta=delta, about={})
        certificate = certify_claim(claim, check=False)
        assert certificate.holds, name
        out[name] = json.loads(json.dumps(certificate.to_dict()))
    return out
