"""Certify a plan; check a certificate again."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet._plain import JsonObject
from discreet.privacy.certificates import verify as verifier
from discreet.privacy.certificates.document import Certificate, CertificateError, rounded
from discreet.privacy.certificates.laws import Progress
from discreet.privacy.certificates.plans import Claim, Plan, claim_of


def certify(
    plan: Plan,
    *,
    users: int | None = None,
    check: bool = True,
    progress: Progress = lambda _: None,
) -> Certificate:
    """A rigorous bound on the delta of a plan's noise, as a certificate.

    Args:
        plan: what `TrustModel.calibrate` or `calibrate_layered` returned.
        users: of the batch (shuffle plans need it).
        check: also run the verifier on the result, as a reader would.
        progress: called with what is being computed.

    >>> from discreet.mdp.shape import Shape
    >>> from discreet.privacy import Central
    >>> plan = Central(epsilon=1, delta=1e-6).calibrate(Shape(states=2, actions=2, horizon=2))
    >>> certificate = certify(plan)
    >>> certificate.holds, round(certificate.ratio, 3)
    (True, 1.0)
    """
    return certify_claim(claim_of(plan, users=users), check=check, progress=progress)


def certify_claim(
    claim: Claim, *, check: bool = True, progress: Progress = lambda _: None
) -> Certificate:
    """`certify` for a claim about any law."""
    start = time.process_time()
    bound, method = claim.law.bound(claim.epsilon, claim.delta, progress)
    found = time.process_time()
    bound = rounded(bound, claim.delta, claim.law.room)
    certificate = Certificate(claim=claim, bound=bound, method=method)
    if check and certificate.holds:
        progress("checking with integers")
        verify(certificate)
    return replace(certificate, seconds=(found - start, time.process_time() - found))


def verify(
    source: str | Path | JsonObject | Certificate,
    *,
    of: Plan | None = None,
    users: int | None = None,
) -> Fraction:
    """Check a certificate with integers alone; returns the bound that was found again.

    Args:
        source: a file, its content, or a certificate.
        of: the plan that it must be a certificate of: its release, its noise, its guarantee.
        users: of the plan's batch, as `certify` takes it.
    """
    try:
        data = _content(source)
        bound = verifier.check(data)
        if of is not None:
            verifier.compare(data, claim_of(of, users=users).to_dict())
    except verifier.Refused as refused:
        raise CertificateError(str(refused)) from None
    return bound


def _content(source: str | Path | JsonObject | Certificate) -> Any:
    if isinstance(source, Certificate):
        return json.loads(json.dumps(source.to_dict()))
    return dict(source) if isinstance(source, Mapping) else verifier.read(str(source))
