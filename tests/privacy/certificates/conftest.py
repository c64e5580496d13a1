"""A small certificate of every kind of noise, made once."""

import json
from fractions import Fraction

import pytest

from discreet.privacy.certificates import verify
from discreet.privacy.certificates.document import Claim, certify_claim
from helpers.certificates import release


@pytest.fixture(scope="session")
def made():
    """Kind of noise -> content of a certificate that holds, as it would be read from a file."""
    one = {"horizon": 1, "statistics": ["visits"]}
    two = {"horizon": 1, "states": 3, "statistics": ["transitions", "rewards"]}
    many = {"length": 100, "encoder": [2**24] + [0] * 99, "columns": [1] * 100}
    some = {
        "binomial": (
            release("shuffle batch", "bits", users=100, **one),
            {"trials": 200, "probability": "1/2"},
            ("1", "1/1000000"),
        ),
        "poisson": (release("shuffle batch", "histogram", **one), {"mean": "50"}, ("1", "1e-6")),
        "histogram": (
            release("shuffle batch", "histogram", users=10, **two),
            {"trials": [100, 60], "probability": ["1/2", "1/3"]},
            ("2", "1/1000"),
        ),
        "table": (
            release("local continual", "bounded", **one),
            {"weights": [1, 4, 9, 4, 1], "draws": 1},
            ("2", "1/4"),
        ),
        "discrete-gaussian": (
            release("central batch", "gaussian", horizon=2),
            {"sigma": "15"},
            ("1", "1e-6"),
        ),
        "gaussian-grid": (
            release("central continual", "toeplitz"),
            {"sigma": str(26 * 2**24), **many},
            ("1", "1e-6"),
        ),
        "layered-gaussian": (
            release("local layered continual", "gaussian", actions=1),
            {"count_sigma": "1", "loss_sigma": "1024"},
            ("10", "1/100"),
        ),
        "discrete-laplace": (release("central batch", "laplace"), {"scale": "36"}, ("1", "0")),
        "randomized-response": (
            release("local continual", "randomized-response", **one),
            {"flip": "1/3"},
            ("2", "0"),
        ),
        "one-step": (
            release("local batch", "split"),
            {"keep": "1/2", "flip": "27/100"},
            ("1", "0"),
        ),
    }
    assert set(some) == set(verify.NOISES)
    out = {}
    for name, (of, numbers, (epsilon, delta)) in some.items():
        claim = Claim(
            release=of,
            noise={"name": name, **numbers},
            epsilon=Fraction(epsilon),
            delta=Fraction(delta),
        )
        certificate = certify_claim(claim)
        assert certificate.holds, name
        out[name] = json.loads(json.dumps(certificate.to_dict()))
    return out
