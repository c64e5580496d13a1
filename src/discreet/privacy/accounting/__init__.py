"""Noise levels for guarantees, and guarantees of noise levels."""

from discreet._lazy import attach as _attach

_WHERE = {
    "binomial_pmf": "discreet.privacy.accounting.distributions",
    "delta_of_moves": "discreet.privacy.accounting.losses",
    "delta_of_shifts": "discreet.privacy.accounting.losses",
    "discrete_gaussian_sigma": "discreet.privacy.accounting.search",
    "epsilon_of_moves": "discreet.privacy.accounting.losses",
    "noise_bits": "discreet.privacy.accounting.search",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
