"""Noise levels for guarantees, and guarantees of noise levels, by several independent routes."""

from discreet._lazy import attach as _attach

_WHERE = {
    "NoisePmf": "discreet.privacy.calibration.distributions",
    "Shift": "discreet.privacy.calibration.losses",
    "binomial_pmf": "discreet.privacy.calibration.distributions",
    "delta_of_moves": "discreet.privacy.calibration.losses",
    "delta_of_shifts": "discreet.privacy.calibration.losses",
    "discrete_gaussian_pmf": "discreet.privacy.calibration.distributions",
    "discrete_laplace_pmf": "discreet.privacy.calibration.distributions",
    "epsilon_of_moves": "discreet.privacy.calibration.losses",
    "epsilon_of_shifts": "discreet.privacy.calibration.losses",
    "gaussian_delta": "discreet.privacy.calibration.closed_forms",
    "gaussian_epsilon": "discreet.privacy.calibration.closed_forms",
    "gaussian_sigma": "discreet.privacy.calibration.closed_forms",
    "gaussian_variance": "discreet.privacy.calibration.closed_forms",
    "laplace_epsilon": "discreet.privacy.calibration.closed_forms",
    "laplace_scale": "discreet.privacy.calibration.closed_forms",
    "laplace_variance": "discreet.privacy.calibration.closed_forms",
    "need_delta": "discreet.privacy.calibration.closed_forms",
    "table_pmf": "discreet.privacy.calibration.distributions",
}

__getattr__, __dir__ = _attach(__name__, _WHERE)
