"""What a study promises to every user, with what it assumes beyond its mechanism."""

import dataclasses

from discreet.privacy.guarantee import Guarantee, said

OPERATOR = (
    "any well-formed episode has a release: who leaves the policy counts as nothing from there on",
    "the trusted operator may see how many left a batch's policy, on the screen; it is not stored",
)
"""What a central study assumes of who runs it."""
PUBLIC = "who took part, and how many in each batch, is public: that is not protected"


def promise(
    released: Guarantee, *, secure: bool, releases: int = 1, stream: bool = False
) -> Guarantee:
    """The guarantee of a study from that of one release.

    Args:
        released: of one release.
        secure: whether the noise protects real people.
        releases: how many a user can be in: epsilons and deltas add up.
        stream: every step counts, whatever the policy: nobody can leave it.
    """
    fields = {f.name: getattr(released, f.name) for f in dataclasses.fields(released)}
    if released.notion != "none":
        operator = OPERATOR if released.notion == "JDP" and not stream else ()
        fields["assumptions"] = (*released.assumptions, *operator, *_extra(releases))
        fields["epsilon"] = releases * released.epsilon
        fields["delta"] = min(1.0, releases * released.delta)
    return said(Guarantee(**{**fields, "simulated": not secure}))


def _extra(releases: int) -> tuple[str, ...]:
    if releases == 1:
        return (PUBLIC,)
    return (PUBLIC, f"a user may have reported {releases} times: all are charged")
