"""Certificates: privacy proved by calculation, on a code path of its own, and checked again.

`certify` bounds a mechanism's delta by ball arithmetic (extra ``certify``), `verify` checks the
file with integers of the standard library; ``verify.py`` runs by itself and imports nothing of
ours.
"""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
