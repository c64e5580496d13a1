"""Printed constants: ``calibration="paper"`` reproduces them and says what they really deliver.

Where papers differ, ``calibration="paper-002"`` (a number) takes those of one of them.
"""

import warnings
from typing import TYPE_CHECKING

from discreet.errors import DiscreetWarning, UnsupportedError
from discreet.privacy.guarantee import ASSUMPTIONS, Guarantee, rounded_up

if TYPE_CHECKING:
    from discreet.privacy.trust import PrivateTrust


def delivered(trust: "PrivateTrust", source: str, epsilon: float, delta: float = 0.0) -> Guarantee:
    """The guarantee that printed noise really delivers; warns if it is weaker than the claim."""
    claim = rounded_up(trust.epsilon) + (f", {rounded_up(trust.delta, 3)}" if trust.delta else "")
    claim = f"({claim})-{trust.notion}"
    if epsilon > trust.epsilon * (1 + 1e-9) or delta > trust.delta:
        warnings.warn(
            f"The constants of {source} claim {claim} but deliver epsilon={rounded_up(epsilon)}"
            + (f", delta={rounded_up(delta, 3)}" if delta else "")
            + " under replace-one; use calibration='exact' for a promise that holds.",
            DiscreetWarning,
            stacklevel=4,
        )
    return Guarantee(
        notion=trust.notion,
        epsilon=float(epsilon),
        delta=float(delta),
        assumptions=ASSUMPTIONS[trust.notion],
        claimed=f"{claim} by {source}",
    )


def no_printed_constants(trust: "PrivateTrust", mechanism: str) -> None:
    """Refuse printed constants for a mechanism that no paper of the five prints."""
    if trust.printed:
        raise UnsupportedError(
            f"No paper prints constants for mechanism={mechanism!r}; use calibration='exact'."
        )


def printed_in(trust: "PrivateTrust", mechanism: str, *papers: str) -> None:
    """Refuse the number of a paper that prints no constants for this mechanism."""
    if trust.paper and trust.paper not in papers:
        raise UnsupportedError(
            f"Paper {trust.paper} prints no constants for mechanism={mechanism!r}, papers "
            f"{', '.join(papers)} do; use calibration='paper-{papers[0]}' or 'exact'."
        )
