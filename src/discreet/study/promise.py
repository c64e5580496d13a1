"""What a study guarantees to every user."""

import dataclasses
from collections.abc import Sequence

from discreet.privacy.guarantee import Guarantee, said

OPERATOR = (
    "every well-formed episode counts, up to the step at which it leaves the policy",
    "the trusted operator may be shown how many people left a policy; the number is not stored",
)
"""What a central study assumes of who runs it."""
CRASH = (
    "if a crash interrupts `tell`, its release is dropped; a copy of the disk that was made before "
    "the study is opened again may show one more release of those people"
)
"""What a central study assumes of a crash: its log can hold a release that was not counted."""
PUBLIC = "who took part, and how many in each batch, is public: that is not protected"
WEAK = (
    "batch {} was counted with less noise than was promised, as the operator decided: the stated "
    "epsilon does not hold for it"
)
"""What a study says of a batch that was accepted with too many unreadable envelopes."""


def study_guarantee(
    released: Guarantee, *, secure: bool, releases: int = 1, weak: Sequence[int] = ()
) -> Guarantee:
    """The guarantee of a study from that of one release.

    Args:
        released: of one release.
        secure: whether the noise protects real people.
        releases: how many a user can be in: epsilons and deltas add up.
        weak: batches that were counted with too little noise.
    """
    fields = {f.name: getattr(released, f.name) for f in dataclasses.fields(released)}
    if released.notion != "none":
        operator = (*OPERATOR, CRASH) if released.notion == "JDP" else ()
        again = (f"a user may have reported {releases} times: all are charged",)
        extra = (PUBLIC, *(again if releases > 1 else ()), *map(WEAK.format, weak))
        fields["assumptions"] = (*released.assumptions, *operator, *extra)
        fields["epsilon"] = releases * released.epsilon
        fields["delta"] = min(1.0, releases * released.delta)
    return said(Guarantee(**{**fields, "simulated": not secure}))
