"""Tables and epsilons of discrete noise, to compare compositions with."""

import math

import numpy as np

from discreet.privacy.accounting.closed_forms import least_epsilon
from discreet.privacy.accounting.distributions import NoisePmf
from discreet.privacy.accounting.lattice import discrete_gaussian_delta, discrete_laplace_delta


def discrete_laplace_pmf(scale):
    """P(x) = tanh(1/(2·scale)) · exp(-|x| / scale), cut where exp(-75) of the mass remains."""
    reach = math.ceil(75 * scale) + 1
    log = -np.abs(np.arange(-reach, reach + 1)) / scale
    return NoisePmf(-reach, log + math.log(math.tanh(0.5 / scale)), 1e-30)


def discrete_gaussian_epsilon(sigma, cells, delta, *, pile=1):
    """The least epsilon at ``delta``; see `discrete_gaussian_delta`."""
    return least_epsilon(lambda e: discrete_gaussian_delta(sigma, cells, e, pile=pile), delta)


def discrete_laplace_epsilon(scale, moves, delta):
    """The least epsilon at ``delta``; at delta = 0 it is the pure moves/scale."""
    return least_epsilon(
        lambda e: discrete_laplace_delta(scale, moves, e), delta, largest=moves / scale
    )
