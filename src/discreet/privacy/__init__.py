"""Privacy: guarantees, trust models, mechanisms, accounting, certificates, projection."""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
