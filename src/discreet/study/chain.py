"""The hash chain of a study: one digest, its head, that stands for everything the file holds.

The first link covers the configuration and the key of the names; each told batch adds a link over
the one before it, its users, the policy they ran and the head before it. The *head* is the last
link closed over the present state: what is promised, the released statistics, the next question and
the generators. So an edit anywhere in the file changes the head, and an older copy has another one.

The chain has no secret: who can edit the file can also write a new chain. Only a head that was kept
elsewhere (on paper, in a laboratory book) tells such a file, or an older copy, from the right one.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from discreet.errors import StudyError

_LINKED = {"format", "config", "key", "users", "told", "head"}


def link(previous: str, *parts: object) -> str:
    """The digest of plain values after the link ``previous``."""
    text = json.dumps([previous, *parts], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def first_link(content: dict[str, Any]) -> str:
    """The link of a study that has told nothing."""
    return link("", content["format"], content["config"], content["key"])


def next_link(previous: str, entry: dict[str, Any], users: list[str]) -> str:
    """The link of one told batch: its entry (without its own link) and its users."""
    return link(previous, {k: v for k, v in entry.items() if k != "link"}, users)


def last_link(content: dict[str, Any]) -> str:
    """The link of the last told batch."""
    told = content["told"]
    return str(told[-1]["link"]) if told else first_link(content)


def head_of(content: dict[str, Any]) -> str:
    """The head: the last link, closed over everything else that the file holds now."""
    rest = {name: part for name, part in content.items() if name not in _LINKED}
    return link(last_link(content), rest)


def heads(content: dict[str, Any]) -> Iterator[str]:
    """The heads that this study has had, in order; the present one is the last."""
    yield from (entry["before"] for entry in content["told"])
    yield content["head"]


def verify(content: dict[str, Any], where: str) -> None:
    """Refuse a file of which anything was changed since it was written."""
    try:
        whole = _links_hold(content) and head_of(content) == content["head"]
    except (KeyError, TypeError, AttributeError, IndexError):  # an edit took something away
        whole = False
    if not whole:
        raise StudyError(
            f"{where!r} was edited or damaged: its contents do not match its chain of digests; "
            f"go back to the last whole copy whose head you know."
        )


def _links_hold(content: dict[str, Any]) -> bool:
    previous, first = first_link(content), 0
    for number, entry in enumerate(content["told"]):
        users = content["users"][first : first + entry["users"]]
        previous, first = next_link(previous, entry, users), first + entry["users"]
        if entry["link"] != previous or entry["batch"] != number:
            return False
    return first == len(content["users"])


def check_head(content: dict[str, Any], head: str | None, where: str) -> None:
    """Refuse a file that does not contain the state of which ``head`` is the digest."""
    if head is not None and head not in heads(content):
        raise StudyError(
            f"{where!r} is an older copy or another study: it has never had the head {head!r}; "
            f"resume the newest file, so that nobody is counted twice."
        )
