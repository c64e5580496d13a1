"""The certificate: a claim with its proven bound, as a small file of exact numbers."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from discreet import _validate
from discreet._files import write_atomically
from discreet._types import JsonObject, Plain
from discreet.errors import CalibrationError, InvalidInputError, UnsupportedError
from discreet.privacy.certificates import verify as verifier
from discreet.privacy.certificates.prove import Progress, prove
from discreet.privacy.guarantee import Guarantee, rounded_down, rounded_up

FORMAT = "discreet-certificate/1"
NOT_COVERED = verifier.NOT_COVERED
"""What no certificate says anything about."""


UNPROVEN = "the noise is enough: no certificate covers this release"
"""What a guarantee assumes whose noise nobody has proven."""


class CertificateError(CalibrationError):
    """A certificate that does not hold, or a claim that could not be certified."""


@runtime_checkable
class Certifiable(Protocol):
    """A calibrated mechanism, which says itself what a certificate has to prove."""

    @property
    def guarantee(self) -> Guarantee: ...

    def certified(self, users: int | None = None) -> tuple[str, dict[str, Any]]:
        """The name of its noise (one of `verify.NOISES`) and its numbers, exactly."""

    def release_facts(self, users: int | None = None) -> dict[str, Plain]:
        """What is released, of whom and when: all that the moves of one user depend on."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A release, its noise and the guarantee that it delivers, in exact numbers."""

    release: dict[str, Plain]
    noise: dict[str, Plain]
    epsilon: Fraction
    delta: Fraction

    def to_dict(self) -> dict[str, Plain]:
        """As a certificate states it, without its method and bound."""
        return {
            "format": FORMAT,
            "release": self.release,
            "noise": self.noise,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
        }


def claim_of(mechanism: Certifiable, *, users: int | None = None) -> Claim:
    """What a mechanism *says* of itself, in exact numbers; `verify.py` derives the moves again.

    ``users``: of the batch, where the noise depends on it; None: for every batch.
    """
    if not isinstance(mechanism, Certifiable):
        raise InvalidInputError(
            f"Expected a calibrated mechanism, got {mechanism!r}; write for instance "
            f"Central(epsilon=1, delta=1e-6).calibrate(Shape(states=4, actions=2, horizon=6))."
        )
    guarantee = mechanism.guarantee
    if guarantee.notion == "none":
        raise UnsupportedError(
            "A mechanism without privacy guarantees nothing that could be certified."
        )
    if guarantee.claimed is not None:
        raise UnsupportedError(
            "Printed constants are not covered by certificates; use calibration='exact'."
        )
    name, numbers = mechanism.certified(users)
    return Claim(
        release=mechanism.release_facts(users),
        noise={"name": name, **{field: _plain(value) for field, value in numbers.items()}},
        epsilon=claimed(guarantee.epsilon),
        delta=claimed(guarantee.delta),
    )


def _plain(value: Any) -> Plain:
    """As a document says it: fractions as text, tables as lists."""
    if isinstance(value, float | Fraction):
        return str(Fraction(value))
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def claimed(value: float) -> Fraction:
    """The smaller of what a person means by a number and what the machine makes of it.

    >>> claimed(0.1)
    Fraction(1, 10)
    """
    return min(_validate.exact(value), Fraction(value))  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A claim, and the least delta(epsilon) that could be proven for it.

    Attributes:
        claim: release, noise, epsilon and delta.
        bound: a proven bound on delta(epsilon); the claim holds if it is at most delta.
        method: how `verify.py` finds a bound again.
        seconds: of processor time.
    """

    claim: Claim
    bound: Fraction
    method: dict[str, Plain]
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the proven delta is at most the claimed one."""
        return self.bound <= self.claim.delta

    @property
    def ratio(self) -> float:
        """Bound over delta; zero for a pure epsilon that holds."""
        if self.claim.delta == 0:
            return float(self.bound)
        return float(self.bound / self.claim.delta)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON: what `verify.py` reads."""
        data = {**self.claim.to_dict(), "method": self.method, "bound": str(self.bound)}
        return data | {"digest": verifier.digest(data)}

    def write(self, path: str | Path) -> None:
        """Write the file; a claim that was not proven has none."""
        if not self.holds:
            raise CertificateError(self.sentence())
        text = json.dumps(self.to_dict(), indent=1) + "\n"
        write_atomically(Path(path), text.encode("ascii"))

    def sentence(self) -> str:
        """What is proven, for people."""
        claim = self.claim
        pair = f"delta({rounded_up(claim.epsilon)})"
        if self.holds:
            bound, delta = rounded_up(self.bound, 9), rounded_up(claim.delta, 9)
            return f"{pair} <= {bound} <= {delta} is proven for {claim.noise['name']} noise."
        return (
            f"Not certified: the best bound on {pair} is {rounded_up(self.bound, 9)}, above "
            f"{rounded_down(claim.delta, 9)}; either the claim is false or the method is too "
            f"coarse."
        )


def rounded(bound: Fraction, delta: Fraction) -> Fraction:
    """A bound in ten digits, rounded up; at most delta."""
    if bound == 0 or bound > delta:
        return bound
    unit = Fraction(1)
    while bound < 10**9 * unit:
        unit /= 10
    return min(delta, -(-bound // unit) * unit)


def certify(
    mechanism: Certifiable,
    *,
    users: int | None = None,
    progress: Progress = lambda _: None,
) -> Certificate:
    """A rigorous bound on the delta of the noise of a mechanism, as a certificate.

    The bound is the one that `verify.py` finds: integers, and nothing of the calibration.

    Args:
        mechanism: what `TrustModel.calibrate` or `calibrate_layered` returned.
        users: of the batch (where the noise depends on it).
        progress: called with what is being computed.

    Raises:
        UnsupportedError: no certificate covers this mechanism, or this size of it.

    >>> from discreet.mdp.shape import Shape
    >>> from discreet.privacy import Central
    >>> mechanism = Central(epsilon=1, delta=1e-6).calibrate(Shape(states=2, actions=2, horizon=2))
    >>> certificate = certify(mechanism)
    >>> certificate.holds, round(certificate.ratio, 3)
    (True, 1.0)
    """
    return certify_claim(claim_of(mechanism, users=users), progress=progress)


def certify_claim(claim: Claim, *, progress: Progress = lambda _: None) -> Certificate:
    """`certify` for a claim about any noise."""
    start = time.process_time()
    try:
        bound, method = prove(claim.to_dict(), progress)
    except verifier.Unknown as unknown:
        raise UnsupportedError(f"There is no certificate of this: {unknown}") from None
    except verifier.Refused as refused:
        raise CertificateError(f"Not certified: {refused}") from None
    bound = rounded(bound, claim.delta)
    seconds = time.process_time() - start
    return Certificate(claim=claim, bound=bound, method=method, seconds=seconds)


@lru_cache(maxsize=64)
def proven(mechanism: Certifiable) -> bool:
    """Prove, before anything real is released, that the noise is enough: True if it is.

    What no certificate covers (a mechanism of one's own, m episodes of a person in one release) is
    False, and whoever releases it says so.

    Raises:
        CertificateError: the noise was not proven to be enough.
    """
    if getattr(mechanism, "per_batch", False):
        return False
    try:
        certificate = certify(mechanism)
    except UnsupportedError:
        return False
    if not certificate.holds:
        raise CertificateError(f"Nothing was released. {certificate.sentence()}")
    return True


def verify(
    source: str | Path | JsonObject | Certificate,
    *,
    of: Certifiable | None = None,
    users: int | None = None,
) -> Fraction:
    """Check a certificate with integers alone; returns the bound that was found again.

    Args:
        source: a file, its content, or a certificate.
        of: the mechanism that it must be a certificate of: its release, its noise, its guarantee.
        users: of the batch, as `certify` takes it.
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
