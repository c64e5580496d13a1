"""Noise levels for guarantees, and guarantees of noise levels, by several independent routes."""

from discreet._lazy import attach as _attach

_WHERE = {
    "NoiseBits": "discreet.privacy.calibration.search",
    "NoisePmf": "discreet.privacy.calibration.distributions",
    "Route": "discreet.privacy.calibration.routes",
    "Shift": "discreet.privacy.calibration.losses",
    "binomial_pmf": "discreet.privacy.calibration.distributions",
    "binomial_routes": "discreet.privacy.calibration.routes",
    "binomial_trials": "discreet.privacy.calibration.search",
    "cross_check": "discreet.privacy.calibration.routes",
    "delta_of_moves": "discreet.privacy.calibration.losses",
    "delta_of_shifts": "discreet.privacy.calibration.losses",
    "discrete_gaussian_delta": "discreet.privacy.calibration.lattice",
    "discrete_gaussian_epsilon": "discreet.privacy.calibration.lattice",
    "discrete_gaussian_pmf": "discreet.privacy.calibration.distributions",
    "discrete_gaussian_sigma": "discreet.privacy.calibration.search",
    "discrete_laplace_delta": "discreet.privacy.calibration.lattice",
    "discrete_laplace_epsilon": "discreet.privacy.calibration.lattice",
    "discrete_laplace_pmf": "discreet.privacy.calibration.distributions",
    "epsilon_of_moves": "discreet.privacy.calibration.losses",
    "epsilon_of_shifts": "discreet.privacy.calibration.losses",
    "flip_probability": "discreet.privacy.calibration.closed_forms",
    "gaussian_delta": "discreet.privacy.calibration.closed_forms",
    "gaussian_epsilon": "discreet.privacy.calibration.closed_forms",
    "gaussian_routes": "discreet.privacy.calibration.routes",
    "gaussian_sigma": "discreet.privacy.calibration.closed_forms",
    "gaussian_variance": "discreet.privacy.calibration.closed_forms",
    "laplace_epsilon": "discreet.privacy.calibration.closed_forms",
    "laplace_routes": "discreet.privacy.calibration.routes",
    "laplace_scale": "discreet.privacy.calibration.closed_forms",
    "laplace_variance": "discreet.privacy.calibration.closed_forms",
    "least_epsilon": "discreet.privacy.calibration.closed_forms",
    "need_delta": "discreet.privacy.calibration.closed_forms",
    "noise_bits": "discreet.privacy.calibration.search",
    "rdp_epsilon": "discreet.privacy.calibration.routes",
    "table_pmf": "discreet.privacy.calibration.distributions",
    "worst_gaussian_delta": "discreet.privacy.calibration.piles",
    "zcdp_epsilon": "discreet.privacy.calibration.routes",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
