"""The certificate: a claim with its proven bound, as a small file of exact numbers."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from discreet._files import write_atomically
from discreet._plain import Plain
from discreet.errors import CalibrationError
from discreet.privacy.certificates import verify as verifier
from discreet.privacy.certificates.plans import Claim
from discreet.privacy.guarantee import rounded_down, rounded_up

FORMAT = "discreet-certificate/1"
NOT_COVERED = verifier.NOT_COVERED
"""What no certificate says anything about."""


class CertificateError(CalibrationError):
    """A certificate that does not hold, or a claim that could not be certified."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A claim, and the least delta(epsilon) that could be proven for it.

    Attributes:
        claim: release, law, epsilon and delta.
        bound: a proven bound on delta(epsilon); the claim holds if it is at most delta.
        method: how `verify.py` finds a bound again.
        seconds: of processor time, for the bound and for checking it.
    """

    claim: Claim
    bound: Fraction
    method: dict[str, Plain]
    seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def holds(self) -> bool:
        """The claim is proven."""
        return self.bound <= self.claim.delta

    @property
    def ratio(self) -> float:
        """Bound over delta; zero for a pure epsilon that holds."""
        if self.claim.delta == 0:
            return float(self.bound)
        return float(self.bound / self.claim.delta)

    def to_dict(self) -> dict[str, Plain]:
        """The file's content."""
        data: dict[str, Plain] = {
            "format": FORMAT,
            **self.claim.to_dict(),
            "method": self.method,
            "bound": str(self.bound),
        }
        return data | {"digest": verifier.digest(data)}

    def write(self, path: str | Path) -> None:
        """Write the file; a claim that was not proven has none."""
        if not self.holds:
            raise CertificateError(self.sentence())
        text = json.dumps(self.to_dict(), indent=1) + "\n"
        write_atomically(Path(path), text.encode("ascii"))

    def sentence(self) -> str:
        """What was found."""
        claim = self.claim
        pair = f"delta({rounded_up(claim.epsilon)})"
        if self.holds:
            bound, delta = rounded_up(self.bound, 9), rounded_up(claim.delta, 9)
            return f"{pair} <= {bound} <= {delta} is proven."
        return (
            f"Not certified: the best bound on {pair} is {rounded_up(self.bound, 9)}, above "
            f"{rounded_down(claim.delta, 9)}; either the claim is false or the method is too "
            f"coarse."
        )


def rounded(bound: Fraction, delta: Fraction, room: Fraction) -> Fraction:
    """A bound with a hair of room for the verifier, in few digits; at most delta.

    The room is a part of delta, as the verifier's cuts are: a bound far below delta needs it, too.
    """
    if bound == 0 or bound > delta:
        return bound
    roomy = bound + delta * room
    unit = Fraction(1)
    while roomy < 10**9 * unit:
        unit /= 10
    return min(delta, -(-roomy // unit) * unit)
