"""Noise levels for guarantees, and guarantees of noise levels."""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
