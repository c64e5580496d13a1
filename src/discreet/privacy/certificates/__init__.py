"""Certificates: privacy proved by calculation, on a code path of its own, and checked again."""

from discreet._lazy import attach as _attach

_WHERE = {
    "layered_delta": "discreet.privacy.certificates.layered",
    "layered_refutation": "discreet.privacy.certificates.layered",
}

__getattr__, __dir__ = _attach(__name__, _WHERE)
