"""Privacy: guarantees, noise, calibration, releases, post-processing, audit."""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
