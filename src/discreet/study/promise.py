"""What a study promises to every user, with what it assumes beyond its mechanism."""

import dataclasses

from discreet.privacy.guarantee import Guarantee, said

OPERATOR = (
    "any well-formed episode has a release: who leaves the policy counts as nothing from there on",
    "the trusted operator may see how many left a batch's policy, on the screen; it is not stored",
)
"""What a central study assumes of who runs it."""
COPIES = (
    "without the study's key any number of copies of its file, backups and what a crash leaves "
    "show no more than is promised; nor do the key and one copy; the key and two copies, or a copy "
    "with the log that a crash left beside it, show the exact sums of those counted in between",
    "if a backup is restored and goes on, whoever is counted after it in both files is released "
    "twice, and the promise counts twice",
)
"""What a central stream assumes of its file (proof: `privacy.mechanisms.stored_tree`)."""
CRASH = (
    "a tell that was cut short is dropped when the study is opened next: who copied the disk "
    "before that may see one release more of those people"
)
"""What a central study assumes of a crash: its log can hold a release that was not counted."""
PUBLIC = "who took part, and how many in each batch, is public: that is not protected"


def promise(
    released: Guarantee, *, secure: bool, releases: int = 1, stream: bool = False
) -> Guarantee:
    """The guarantee of a study from that of one release.

    Args:
        released: of one release.
        secure: whether the noise protects real people.
        releases: how many a user can be in: epsilons and deltas add up.
        stream: every step counts, whatever the policy: nobody can leave it. Its file has a state.
    """
    fields = {f.name: getattr(released, f.name) for f in dataclasses.fields(released)}
    if released.notion != "none":
        central = (*(COPIES if stream else OPERATOR), CRASH)
        operator = central if released.notion == "JDP" else ()
        fields["assumptions"] = (*released.assumptions, *operator, *_extra(releases))
        fields["epsilon"] = releases * released.epsilon
        fields["delta"] = min(1.0, releases * released.delta)
    return said(Guarantee(**{**fields, "simulated": not secure}))


def _extra(releases: int) -> tuple[str, ...]:
    if releases == 1:
        return (PUBLIC,)
    return (PUBLIC, f"a user may have reported {releases} times: all are charged")
