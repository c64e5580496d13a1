"""The guarantee, tested: exact privacy of the real code path, attacks on it, conformance checks."""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
