"""Certificates: privacy proved by calculation, on a code path of its own, and checked again.

`certify` chooses a method by which ``verify.py`` bounds a mechanism's delta, with integers of the
standard library; that file runs by itself and imports nothing of ours.
"""

from discreet._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__)
