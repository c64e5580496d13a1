"""Certificates: privacy proved by calculation, on a code path of its own, and checked again.

`certify` bounds a plan's delta by ball arithmetic (extra ``certify``), `verify` checks the file
with integers of the standard library; ``verify.py`` runs by itself and imports nothing of ours.
"""

from discreet._lazy import attach as _attach

_WHERE = {
    "Certificate": "discreet.privacy.certificates.document",
    "CertificateError": "discreet.privacy.certificates.document",
    "Claim": "discreet.privacy.certificates.plans",
    "Layers": "discreet.privacy.certificates.layered",
    "certify": "discreet.privacy.certificates.run",
    "certify_claim": "discreet.privacy.certificates.run",
    "claim_of": "discreet.privacy.certificates.plans",
    "layered_delta": "discreet.privacy.certificates.layered",
    "layered_refutation": "discreet.privacy.certificates.layered",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
