"""What a study promises, who is trusted with what, what is not protected: in words for people."""

import math
from dataclasses import dataclass

from discreet import _validate
from discreet.privacy.guarantee import Guarantee, odds, rounded_up

Lines = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Notion:
    """How a notion of privacy reads.

    Attributes:
        name: in full.
        trusted: who sees raw episodes, in one sentence.
        patient: what is promised, as one would say it to who takes part.
        formula: the same in mathematics (HTML).
        parties: who, what they see, what they are trusted to do.
        unprotected: what is not protected, besides what never is.
    """

    name: str
    trusted: str
    patient: str
    formula: str
    parties: Lines
    unprotected: tuple[str, ...]


_FILE = (
    "Who holds the study's file",
    "noisy statistics, policies, and digests of the participants' names with the key of these "
    "digests",
    "to keep the file as they keep the list of participants: with it a guessed name can be tested",
)
SEALED = (
    "Who holds the study's key, a file of its own",
    "nothing by itself, and with one copy of the study's file no more than is promised; with two "
    "copies the exact sums of those counted in between",
    "to keep it out of the backups of the study",
)
"""Of a study whose file holds what is not released yet."""
_PUBLIC = (
    "Everybody else, other participants included",
    "the policies, this page, who took part and how many",
    "nothing",
)
_SHARED = (
    "<i>E</i>, <i>F</i>: any two data sets that differ in one participant's whole episode "
    "(replace-one); <i>A</i>: any set of outcomes."
)

NOTIONS = {
    "JDP": Notion(
        "joint differential privacy (central)",
        "The operator is trusted with the raw episodes. Nobody else is.",
        "What others get to see of this study would look almost the same if your record were "
        "replaced by anybody else's, whatever is in it: how nearly the same is said below, and it "
        "holds even against all other participants together.",
        "P[what all others receive ∈ <i>A</i> | <i>E</i>] ≤ <i>e</i><sup>ε</sup> · P[what all "
        f"others receive ∈ <i>A</i> | <i>F</i>] + δ. {_SHARED}",
        (
            (
                "The operator of the study",
                "every raw episode",
                "to use it for this study alone, to publish nothing but what this page lists, and "
                "to delete it",
            ),
            _FILE,
            _PUBLIC,
        ),
        (
            "You are not protected from the operator, who holds your record.",
            "What you yourself are told to do depends on your own state: whoever looks over your "
            "shoulder sees it.",
        ),
    ),
    "LDP": Notion(
        "local differential privacy",
        "Nobody is trusted with a raw episode: it never leaves the participant's device.",
        "Your device scrambles your record before anything is sent. Whoever sees what it sends, "
        "the operator included, sees almost the same as if your record were anybody else's.",
        "P[report ∈ <i>A</i> | episode <i>e</i>] ≤ <i>e</i><sup>ε</sup> · P[report ∈ <i>A</i> | "
        "episode <i>f</i>] + δ, for any two episodes <i>e</i>, <i>f</i> and any set <i>A</i>.",
        (
            (
                "The participant's own device",
                "its own raw episode",
                "to add the noise, once, and to send nothing else",
            ),
            ("The operator of the study", "one scrambled report per participant", "nothing"),
            _FILE,
            _PUBLIC,
        ),
        (
            "A device that reports twice about one episode, or sends anything besides, tells more.",
            "That a report was sent, when, and from which address is not hidden.",
        ),
    ),
    "SDP": Notion(
        "shuffle differential privacy",
        "Nobody is trusted with a raw episode. The shuffler is trusted to mix the messages and not "
        "to collude with the analyser.",
        "Your device hides your record among random messages, and a shuffler mixes them with those "
        "of all others. What the analyser sees would look almost the same if your record were "
        "anybody else's.",
        "P[mixed messages ∈ <i>A</i> | <i>E</i>] ≤ <i>e</i><sup>ε</sup> · P[mixed messages ∈ "
        f"<i>A</i> | <i>F</i>] + δ. {_SHARED}",
        (
            (
                "The participant's own device",
                "its own raw episode",
                "to add its noise messages (see the assumptions for how many must)",
            ),
            (
                "The shuffler",
                "who sent, and sealed messages that it cannot read",
                "to mix all messages of a batch, to forward all of them, and not to collude with "
                "the analyser",
            ),
            ("The analyser", "the messages of all participants of a batch, mixed", "nothing"),
            _FILE,
            _PUBLIC,
        ),
        (
            "If shuffler and analyser work together, they can see your episode: there is no "
            "promise to fall back on.",
            "Addresses and times at which messages were sent are not hidden by the mixing.",
        ),
    ),
    "none": Notion(
        "no privacy",
        "Everybody who sees what is published is trusted.",
        "Nothing is promised to you.",
        "No bound.",
        (("The operator of the study", "every raw episode", "everything"), _FILE, _PUBLIC),
        ("Your record is not protected from anybody.",),
    ),
}
NEVER = (
    "That you took part, in which batch, and how many did, is public.",
    "What is true of people in general can be learnt about you, whether you take part or not: if "
    "the study finds that a treatment helps, it helps you too.",
    "Your whole episode counts once. If you take part again, under another name or in another "
    "study, the promises add up.",
    "States, actions, reward range and cut points were fixed in public; nothing here can check "
    "that nobody chose them by looking at the data.",
    "How long computers took, and what other programs or people recorded, is outside of this.",
)


def in_numbers(guarantee: Guarantee) -> tuple[str, ...]:
    """What epsilon and delta mean, in two or three sentences; all numbers rounded up.

    A guess between two records, both as likely as not beforehand, is right with probability at
    most (e^epsilon + delta)/(e^epsilon + 1): its two errors obey p + e^epsilon·q >= 1 - delta, and
    the same with p and q exchanged (Kairouz, Oh and Viswanath 2015).
    """
    if guarantee.notion == "none":
        return ("Whoever sees what is published may learn everything.",)
    factor = math.exp(guarantee.epsilon) if guarantee.epsilon <= 700 else math.inf
    right = 1.0 if factor == math.inf else min(1.0, (factor + guarantee.delta) / (factor + 1))
    said = [
        f"Nothing that anybody can see becomes more than {rounded_up(factor, 3)} times as likely "
        f"or unlikely because of what your record says (e^ε, ε = {rounded_up(guarantee.epsilon)}).",
        f"Somebody who must guess which of two records is yours, and knows all the others, is "
        f"right in at most {rounded_up(100 * right, 3)}% of cases; a coin is right in 50%.",
    ]
    if warning := odds(guarantee.epsilon):
        said.append(f"This is weak: {warning}")
    if guarantee.delta:
        one_in = math.floor(1 / _validate.exact(guarantee.delta))
        said.append(
            f"Beyond this there is a chance of failure δ = {rounded_up(guarantee.delta, 3)}, "
            f"at most one in {one_in:,}."
        )
    return tuple(said)
