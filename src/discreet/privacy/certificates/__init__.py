"""Certificates: privacy proved by calculation, on a code path of its own, and checked again.

`certify` bounds a plan's delta by ball arithmetic (extra ``certify``), `verify` checks the file
with integers of the standard library; ``verify.py`` runs by itself and imports nothing of ours.
"""

from discreet._lazy import attach as _attach

_WHERE = {
    "Certificate": "discreet.privacy.certificates.document",
    "CertificateError": "discreet.privacy.certificates.document",
    "Claim": "discreet.privacy.certificates.claims",
    "Layers": "discreet.privacy.certificates.distributions",
    "certify": "discreet.privacy.certificates.document",
    "certify_claim": "discreet.privacy.certificates.document",
    "claim_of": "discreet.privacy.certificates.claims",
    "layered_delta": "discreet.privacy.certificates.distributions",
    "layered_refutation": "discreet.privacy.certificates.distributions",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
