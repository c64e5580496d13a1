"""The simulation sampler of most tests of releases."""

import numpy as np

from discreet.privacy.sampling.samplers import SimulationSampler


def sampler(seed=0):
    """Draws that a seed determines."""
    return SimulationSampler(np.random.default_rng(seed))
