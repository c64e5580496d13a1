"""`certify` takes plans and says so."""

import pytest

pytest.importorskip("flint")

from discreet import Central, Shuffle
from discreet.errors import InvalidInputError
from discreet.mdp.shape import Shape
from discreet.privacy import certify


@pytest.mark.parametrize("thing", [Central(1), Central, "central/gaussian", None])
def test_what_is_no_plan_is_one_sentence(thing):
    with pytest.raises(InvalidInputError, match=r"a calibrated mechanism, got .*\.calibrate\("):
        certify(thing)


@pytest.mark.parametrize("epsilon", [4.0, 5.0, 6.0, 8.0])
def test_what_is_certified_passes_its_own_check_where_noise_is_little(epsilon):
    trust = Shuffle(epsilon, 1e-4, mechanism="histogram")
    certificate = certify(trust.calibrate(Shape(states=3, actions=2, horizon=3)))
    assert certificate.holds and certificate.ratio > 0.99
