"""What a study promises to every user, with what it assumes beyond its mechanism."""

import dataclasses

from discreet.privacy.guarantee import Guarantee

OPERATOR = (
    "any well-formed episode has a release: who leaves the policy counts as nothing from there on",
    "the trusted operator may see how many left a batch's policy, on the screen; it is not stored",
)
"""What a central study assumes of who runs it."""
REHEARSED = "SIMULATED, protects nobody"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rehearsal(Guarantee):
    """The promise of a rehearsal: what a study with secure noise would promise."""

    def __str__(self) -> str:
        """One line that nobody takes for a promise."""
        return f"{REHEARSED}: {Guarantee.__str__(self)}"


def promise(released: Guarantee, *, secure: bool) -> Guarantee:
    """The guarantee of a study from that of its releases."""
    central = released.notion == "JDP"
    kind = Guarantee if secure or released.notion == "none" else Rehearsal
    fields = {f.name: getattr(released, f.name) for f in dataclasses.fields(released)}
    extra = OPERATOR if central else ()
    fields |= {"simulated": not secure, "assumptions": (*released.assumptions, *extra)}
    return kind(**fields)
