"""Every stream runs with the operating system's randomness, one release at a time."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.sampling.samplers import SecureSampler
from discreet.privacy.trust import Central, Local

TINY = Shape(states=2, actions=1, horizon=2)
TRUSTS = [
    *(Central(1, 1e-3, mechanism=name) for name in mechanisms("central", "continual")),
    *(Local(1, 1e-1, mechanism=name) for name in mechanisms("local", "continual")),
]


@pytest.mark.parametrize("trust", TRUSTS, ids=lambda t: f"{t.notion}-{t.mechanism}")
def test_secure_streams_are_stamped_and_plausible(trust):
    pytest.importorskip("opendp")
    mechanism = trust.calibrate(TINY, schedule="continual", episodes=8)
    release = mechanism.open(SecureSampler())
    transitions = np.zeros(TINY.transitions, np.int64)
    transitions[:, 0, 0, 1] = 1
    user = Counts(1, transitions, transitions.sum(axis=-1))
    for _ in range(8):
        private = release.add(user)
    assert not private.guarantee.simulated
    error = np.concatenate(
        [
            (private.transitions - 8 * transitions).ravel(),
            (private.visits - 8 * user.visits).ravel(),
            (private.rewards - 8 * user.rewards).ravel(),
        ]
    )
    assert np.abs(error).max() <= mechanism.error_bound(8, 1e-8)  # 16 counters: 1.6e-7
    assert error.any()
    with pytest.raises(InvalidInputError):
        mechanism.noise_variance(9)
    with pytest.raises(InvalidInputError):
        mechanism.error_bound(0, 0.1)
