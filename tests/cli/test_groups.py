"""The promise and the release that `calibrate` and `certify` share."""

import pytest

from discreet.cli._groups import Promise, Release, streams_only
from discreet.errors import DiscreetError
from discreet.mdp.shape import Shape

pytestmark = pytest.mark.core


@pytest.mark.parametrize("trust", ["central", "local", "shuffle"])
def test_a_promise_becomes_a_trust_model(trust):
    model = Promise(epsilon=0.5, delta=1e-7, honest=0.25).model(trust)
    assert (model.name, model.epsilon, model.delta) == (trust, 0.5, 1e-7)
    assert model.mechanism == "auto"
    assert model.calibration == "exact"
    if trust == "shuffle":
        assert model.honest == 0.25


def test_the_printed_constants_are_asked_for_by_name():
    assert Promise().model("shuffle", "paper").calibration == "paper"
    assert Promise(mechanism="gaussian").model("central").mechanism == "gaussian"


@pytest.mark.parametrize("trust", ["central", "local", "none"])
def test_honest_users_belong_to_shuffle(trust):
    with pytest.raises(DiscreetError, match=f"--honest belongs to --trust shuffle.*{trust}"):
        Promise(trust=trust, honest=0.5).model(trust)


def test_a_trust_model_that_does_not_exist_is_refused():
    with pytest.raises(DiscreetError, match="Unknown trust model 'nobody'"):
        Promise().model("nobody")


def test_a_release_knows_its_size_and_its_counters():
    release = Release(states=3, actions=4, horizon=5, statistics=" visits, rewards")
    assert release.shape == Shape(states=3, actions=4, horizon=5)
    assert release.counters == ("visits", "rewards")
    assert Release().counters is None
    with pytest.raises(DiscreetError, match="states"):
        _ = Release(states=0).shape


@pytest.mark.parametrize(
    ("trust", "mechanism", "alone"),
    [
        ("central", "tree-laplace", True),
        ("central", "toeplitz", True),
        ("central", "gaussian", False),
        ("central", "auto", False),
        ("local", "laplace", False),
        ("shuffle", "tree-laplace", False),
    ],
)
def test_some_mechanisms_exist_for_streams_alone(trust, mechanism, alone):
    assert streams_only(trust, mechanism) is alone
