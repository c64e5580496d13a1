"""Noise levels for guarantees, and guarantees of noise levels, by several independent routes."""

from discreet._lazy import attach as _attach

_WHERE = {
    "gaussian_delta": "discreet.privacy.calibration.closed_forms",
    "gaussian_epsilon": "discreet.privacy.calibration.closed_forms",
    "gaussian_sigma": "discreet.privacy.calibration.closed_forms",
    "gaussian_variance": "discreet.privacy.calibration.closed_forms",
    "laplace_epsilon": "discreet.privacy.calibration.closed_forms",
    "laplace_scale": "discreet.privacy.calibration.closed_forms",
    "laplace_variance": "discreet.privacy.calibration.closed_forms",
    "need_delta": "discreet.privacy.calibration.closed_forms",
}

__getattr__, __dir__ = _attach(__name__, _WHERE)
