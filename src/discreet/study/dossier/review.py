"""Check a study's bundle: python -I review.py [--head HEAD].

One file, standard library; nothing of the project is imported but `verify.py`, which stands beside
it, stands alone and is trusted. Claims of `dossier.html` that the other files confirm:

- every file has the SHA-256 that `SHA256SUMS` says, and no other file is there;
- the entries of `ledger.jsonl` quote each other's hashes up to the head, and count the users and
  batches that the page says;
- the digests in `participants.bin` are those that the entries quote; nobody is in a batch twice, or
  in more batches than the guarantee allows;
- `design.json` is what the first entry quotes, and the page prints it;
- the guarantee of the last entry is the design's, and the page's;
- every certificate is proven again, at most this epsilon and delta, is about the release of this
  design in every field (`settled`), and is the one that the page holds;
- `policy.json` is the policy that the ledger recorded and the page shows, with its differences;
- the words about this kind of privacy, and the looks of the page, are those of this program.

What is not compared is printed at the end (`UNCHECKED`): read it.

Who can edit one file can edit all of them, this one included. So get the head, and the SHA-256 of
the zip file, from the operator on another way (on paper, by telephone), and give the head.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # no file beside this one takes the place of a module

import argparse
import base64
import hashlib
import importlib.util
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

SUMS = "SHA256SUMS"
DIGEST = 16
"""Bytes of a participant's digest."""
ROUNDED = Fraction(1001, 1000)
"""Printed numbers have four digits, rounded up."""
NOTIONS = {"Central": "JDP", "Local": "LDP", "Shuffle": "SDP", "NoPrivacy": "none"}
SIMULATED = "SIMULATED, protects nobody"
GUARANTEE = re.compile(r"\(([^,]+), ([^)]+)\)-(JDP|LDP|SDP)(?: by [^,]+)?, (.+), replace-one")
TAGS = re.compile(
    "html|head|meta|link|title|style|body|h[123]|p|div|table|caption|thead|tbody|tr|th|td|ul|li|"
    "code|b|i|br|sup|span|small|a|details|summary|pre|svg|g|rect|text"
)
LOOKS = "8ddf0a191d8d3c7d7b2b191776088689d1e40a6a6d563bdb848c25c2d51010a1"
"""SHA-256 of the style sheet."""
WORDS = {
    "JDP": "f758dd594583e46d5e255fbdef29e0f1a4818cb5c240e00fa43664f24298869f",
    "LDP": "90f87c545f9691e90c89857edeb9dcfeae9f0e4265d976abd77156a87aca1b6a",
    "SDP": "75baa29920e7ea29d2b9c7892626a60dc27a6818fcb2d0d2827450132b2bff1e",
    "none": "8a4dc230700dc40227ce2506c81360fd79a08cca99ede6796fab2738695f32b9",
}
"""SHA-256 of what a page says of each notion, its numbers left out (see `Page.words`)."""
MEANING = (
    r"more than (\S+) times as likely",
    r"right in at most (\S+)% of cases",
    r"gives at most (\S+) to 9 ",
    r"harms at most (\S+) in 100 with",
)
"""What a page says that epsilon and delta mean."""
PAIR, ALL = ["transitions", "rewards"], ["transitions", "visits", "rewards"]
LEARNERS = {
    **dict.fromkeys(("explore-then-commit", "flow-ucb", "trial"), (PAIR, False)),
    **dict.fromkeys(("pe", "sdp-pe"), (PAIR, True)),
}
"""Learner -> the statistics that it has released, and whether with the last step's transitions."""
AUTO = {"Central": ["gaussian", "laplace"], "Local": ["split"], "Shuffle": ["histogram"]}
"""Trust -> the mechanisms that ``auto`` compares."""
WITHOUT_LAST = {("Central", "gaussian"), ("Central", "laplace"), ("Local", "split"),
                ("Shuffle", "histogram")}  # fmt: skip
"""Which can leave out transitions of the last step (a curator: of these two statistics alone)."""
PROVEN = ("format", "noise", "method", "bound", "digest")
"""What a certificate says besides; `verify.py` refuses it unless it is enough for the release."""
FIRST, LAST = 20, 20
"""Entries of a long ledger that the page shows."""
UNCHECKED = (
    "that the audit (first page, section 6) was run and found this: `discreet audit` repeats it",
    "the value of the policy, its differences, standard errors and where it defers: the page says "
    "what policy.json says, but the ledger records the actions alone, and the noisy counts stay "
    "with the operator",
    "what no other file repeats: how the study ended and the other rows of the registry (first "
    "page), the assumptions (1), possible actions, stages and settings beyond the design's (4), "
    "the deviation of the noise (5), today's value, what such a study finds, notes and the picture "
    "(7), the page's own software (9), the commands (10)",
    "that the program that ran drew this noise: `discreet audit` tries the installed one",
    "which of the mechanisms that `auto` compares was taken; before a batch was counted, for how "
    "many people a certificate of shuffled messages is",
    "what people do: raw data that was kept, one person under two names, a shuffler that colludes",
)
"""What no file of a bundle can show."""


class Refused(Exception):  # noqa: N818
    """A file does not say what another one says."""


def expect(holds: bool, sentence: str) -> None:
    """Refuse with a sentence unless it holds."""
    if not holds:
        raise Refused(sentence)


def say(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def sha256(data: bytes) -> str:
    """The digest that everything here is compared by."""
    return hashlib.sha256(data).hexdigest()


class Page(HTMLParser):
    """What a reader sees of the dossier: texts and rows of tables by section, and saved files.

    Sections are numbered as their headings are; 0 is the first page.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: dict[int, str] = {0: ""}
        self.rows: dict[int, list[list[str]]] = {0: []}
        self.saved: dict[str, bytes] = {}
        self.unread: dict[str, str] = {"style": "", "pre": ""}
        self.strange: list[str] = []  # tags and attributes that no page has
        self._section = 0
        self._unread = ""  # inside <style> or <pre>
        self._heading = self._in_cell = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self._unread = tag if tag in self.unread else self._unread
        coloured = tag == "i" and re.fullmatch(r"background:#[0-9a-f]{6}", found.get("style", ""))
        plain = {"style", "hidden", "http-equiv"}.isdisjoint(found) or coloured
        known = TAGS.fullmatch(tag) and (
            tag != "link" or found == {"rel": "icon", "href": "data:,"}
        )
        if not (plain and known) or any(name.startswith("on") for name in found):
            self.strange.append(f"<{tag} {' '.join(found)}>")
        self._heading = tag == "h2"
        if tag == "tr":
            self.rows[self._section].append([])
        if tag in ("td", "th"):
            self.rows[self._section][-1].append("")
            self._in_cell = True
        if tag == "a" and "download" in found:
            content = found["href"].partition("base64,")[2]
            self.saved[found["download"]] = base64.b64decode(content, validate=True)

    def handle_endtag(self, tag: str) -> None:
        self._unread = "" if tag in self.unread else self._unread
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._unread:
            self.unread[self._unread] += data
            return
        if self._heading and (number := re.match(r"(\d+)\. ", data)):
            self._section = int(number[1])
            self.texts[self._section], self.rows[self._section] = "", []
        self._heading = False
        self.texts[self._section] += data
        if self._in_cell:
            self.rows[self._section][-1][-1] += data

    def fact(self, section: int, name: str) -> str:
        """What the only row of that name says."""
        found = [row[1] for row in self.rows.get(section, []) if len(row) == 2 and row[0] == name]
        expect(len(found) == 1, f"section {section} of the page says {name!r} {len(found)} times")
        return found[0].strip()

    def says(self, section: int, name: str, text: str) -> None:
        """Refuse a page that says something else."""
        said = self.fact(section, name)
        expect(said == text, f"{name!r} of section {section} of the page is {said!r}, not {text!r}")

    @property
    def words(self) -> str:
        """SHA-256 of the cards, formula, parties and limits, with # for every number."""
        cards = self.texts[0].partition("Who is trusted")[2].partition("\nParticipations")[0]
        formula = self.texts[1].partition("In mathematics: ")[2].partition("; unit:")[0]
        parties = [row for row in self.rows[2] if row[0][:23] != "Who holds the study's k"]
        said = f"{cards} {formula} {self.texts[3]} {parties}".replace(SIMULATED, "")
        whole = " ".join(said.split())
        return sha256(re.sub(r"\d[\d.]*(?:e[+-]?\d+)?", "#", whole).encode())


class Bundle:
    """The files of a folder; each is read when it is first needed."""

    def __init__(self, folder: Path, head: str | None = None) -> None:
        self.folder, self.known_head = folder, head

    def read(self, name: str) -> bytes:
        """The content of a file."""
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise Refused(f"{name} cannot be read: {error.strerror}") from None

    @cached_property
    def page(self) -> Page:
        return Page(self.read("dossier.html").decode())

    @cached_property
    def design(self) -> Any:
        return json.loads(self.read("design.json"))

    @cached_property
    def policy(self) -> Any:
        return json.loads(self.read("policy.json"))

    @cached_property
    def lines(self) -> list[bytes]:
        return self.read("ledger.jsonl").splitlines()

    @cached_property
    def entries(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    @cached_property
    def batches(self) -> list[Any]:
        return [entry for entry in self.entries if entry["kind"] == "batch"]

    @property
    def users(self) -> int:
        return sum(int(entry["users"]) for entry in self.batches)

    @property
    def head(self) -> str:
        return sha256(self.lines[-1])

    @property
    def releases(self) -> int:
        """How often one user may have reported: all are charged."""
        return 1 + len([entry for entry in self.entries if entry.get("returning") == "seen"])

    @property
    def certificates(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("certificate-*.json"))

    @property
    def reward_range(self) -> tuple[float, float]:
        least, most = self.design.get("table", {}).get("reward_range", (0, 1))
        return float(least), float(most)

    def size(self, kind: str) -> int:
        """How many states, actions or steps the design has."""
        return len(self.names(kind))

    def names(self, kind: str) -> list[str]:
        """What the states, actions or steps of the design are called."""
        given = self.design["names"][kind]
        return [str(name) for name in (range(given) if isinstance(given, int) else given)]


def check_files(bundle: Bundle) -> str:
    """Nothing was changed, lost or added since the bundle was made."""
    text = bundle.read(SUMS).decode("ascii")
    listed = {name: digest for digest, _, name in (x.partition("  ") for x in text.splitlines())}
    there = {path.name for path in bundle.folder.iterdir()}
    whole = "".join(f"{digest}  {name}\n" for name, digest in listed.items())
    expect(text == whole, f"{SUMS} was changed")
    for name in sorted({*listed, SUMS} - there):
        raise Refused(f"{name} is missing")
    for name in sorted(there - {*listed, SUMS}):
        raise Refused(f"{name} is not of this bundle: take it away")
    for name, digest in listed.items():
        expect(sha256(bundle.read(name)) == digest, f"{name} was changed: its SHA-256 is another")
    return f"{len(listed)} files are those that {SUMS} lists"


def check_ledger(bundle: Bundle) -> str:
    """The chain up to the head, and what the page says of it."""
    head, closed = "", False
    for number, (line, entry) in enumerate(zip(bundle.lines, bundle.entries, strict=True)):
        follows = entry["number"] == number and entry["previous"] == head and not closed
        expect(follows, f"entry {number} does not follow the one before it")
        kinds = ("start",) if number == 0 else ("batch", "reissue", "extend", "close")
        expect(entry["kind"] in kinds, f"entry {number} is of no known kind")
        closed = entry["kind"] == "close"
        head = sha256(line)
    page = bundle.page
    if bundle.known_head is not None:
        expect(head == bundle.known_head, f"the head is {head}, not {bundle.known_head}")
    page.says(9, "ledger head", head)
    expect(head in page.texts[0] and head in page.texts[11], "the page is about another head")
    said, batches = page.fact(0, "Participations"), len(bundle.batches)
    planned = [e["episodes"] for e in bundle.entries if e["kind"] == "extend"]
    planned.insert(0, bundle.design["episodes"])
    counted = f"{bundle.users:,} of {planned[-1]:,}, in {batches:,} batch"
    expect(said.startswith(counted), f"the page counts {said!r}, the ledger {counted!r}")
    shown = [row for row in bundle.page.rows[8] if row[0] != "entry"]
    history = list(_history(bundle.entries, head))
    if len(history) > FIRST + LAST:
        history = history[:FIRST] + history[-LAST:]
    expect(shown == history, "section 8 of the page shows other entries")
    ending = "" if batches == 1 else "es"
    people = f"{bundle.users:,} users, {batches:,} batch{ending}"
    return f"{len(bundle.entries):,} entries, {people}, head {head}"


def _history(entries: list[Any], head: str) -> Iterator[list[str]]:
    digests = [entry["previous"] for entry in entries[1:]] + [head]
    for entry, digest in zip(entries, digests, strict=True):
        facts = [str(entry.get(name, "")) for name in ("number", "kind", "users", "asked")]
        yield [*facts, str(entry.get("policy", ""))[:16], digest[:16]]


def check_participants(bundle: Bundle) -> str:
    """Nobody was counted more often than is guaranteed for; who they are nobody can see here.

    Batches that came through a service have no names: what was counted are uses of tickets.
    """
    data = bundle.read("participants.bin")
    most = bundle.design["trust"].get("participations", 1)
    seen, begin = Counter[bytes](), 0
    for entry in bundle.batches:
        part = data[begin : begin + DIGEST * entry["users"]]
        begin += DIGEST * entry["users"]
        number = entry["number"]
        expect(sha256(part) == entry["names"], f"entry {number} quotes other participants")
        people = [part[i : i + DIGEST] for i in range(0, len(part), DIGEST)]
        expect(len(set(people)) == len(people), f"somebody is twice in entry {number}")
        seen.update(people)
    expect(begin == len(data), "there are participants of no entry")
    often = max(seen.values(), default=0)
    expect(often <= most, f"somebody was counted {often} times, {most} are guaranteed for")
    if any("manifest" in (entry.get("note") or {}) for entry in bundle.batches):
        return (
            f"{len(seen):,} uses of tickets, each counted once; how many people they are, and that "
            f"no ticket was used more than {most} times, only the service's shuffler can say"
        )
    return f"{len(seen):,} different participants, each counted at most {max(often, 1)} of {most}"


def check_design(bundle: Bundle) -> str:
    """The design is what the first entry quotes, and what the page prints."""
    text, page, design = bundle.read("design.json"), bundle.page, bundle.design
    digest = sha256(text)
    expect(digest == bundle.entries[0]["config"], "the ledger began with another design")
    page.says(9, "configuration (the study's identity)", digest)
    page.says(4, "learner", design["learner"])
    page.says(4, "participations in all", f"{design['episodes']:,}")
    trust = sorted(_plain(design["trust"]).split(", "))
    said = page.fact(4, "trust model")
    expect(sorted(said.split(", ")) == trust, f"the page says {said!r}, the design {trust}")
    secure = design["sampler"] == "secure"
    page.says(4, "randomness", "of the operating system" if secure else SIMULATED)
    warned = SIMULATED in page.texts[0]
    promises = design["trust"]["model"] != "NoPrivacy"
    expect(warned == (promises and not secure), "the page hides, or invents, a rehearsal")
    for kind in ("states", "actions", "steps"):
        names = bundle.names(kind)
        page.says(4, f"{kind} ({len(names)})", _listed(names))
    states, starts = bundle.names("states"), design["start_states"]
    some = len(set(starts)) < len(states)
    page.says(4, "episodes begin in", _listed([states[i] for i in starts]) if some else "any state")
    stationary = "said not to depend on the step" if design["stationary"] else "by step"
    page.says(4, "dynamics", stationary)
    for name, key in (("how tables are read", "table"), ("learner's settings", "settings")):
        said, due = page.fact(4, name), _plain(design.get(key, {}))
        shown, given = set(said.split(", ")), set(due.split(", "))
        right = shown == given or (key == "settings" and (shown > given or due == "as usual"))
        expect(right, f"{name!r} is {said!r} on the page, {due!r} in the design")
    rewards = re.search(r"rewards from\s+(\S+) to (\S+) each", page.texts[7])
    least, most = bundle.reward_range
    right = rewards is not None and [float(x) for x in rewards.groups()] == [least, most]
    expect(right, f"section 7 of the page does not say that rewards go from {least} to {most}")
    return f"{digest}, {design['learner']}, {', '.join(trust)}"


def _listed(names: list[str]) -> str:
    more = f", … ({len(names):,} in all)" if len(names) > 60 else ""
    return ", ".join(names[:60]) + more


def _plain(value: object) -> str:
    if not isinstance(value, dict):
        return str(value)
    parts = [f"{name} {_plain(part)}" for name, part in value.items() if part is not None]
    return ", ".join(parts) or "as usual"


def check_guarantee(bundle: Bundle) -> str:
    """The last entry guarantees what the design asks for, and the page says the same."""
    text, trust = str(bundle.entries[-1]["guarantee"]), bundle.design["trust"]
    notion, first = NOTIONS[trust["model"]], bundle.page.texts[0]
    if notion == "none":
        expect(text == "no privacy" and "ε =" not in first, "a guarantee of no privacy")
        return "nothing is guaranteed"
    epsilon, delta, said, unit = _guaranteed(text)
    expect(said == notion, f"the ledger guarantees {said}, the design {notion}")
    expect(text.startswith(SIMULATED) == (bundle.design["sampler"] != "secure"), "a rehearsal")
    most = trust["participations"]
    whole = "one user's whole episode" if most == 1 else f"one person, up to {most} episodes"
    expect(unit == whole, f"the ledger protects {unit}, the design {whole}")
    for name, stated in (("epsilon", epsilon), ("delta", delta)):
        due = bundle.releases * Fraction(repr(trust[name])) * ROUNDED
        expect(Fraction(stated) <= due, f"the {name} {stated} is above the design's")
    pair = f"ε = {epsilon}, δ = {delta} ({notion})"
    expect(pair in first and pair in bundle.page.texts[1], f"the page does not say {pair}")
    if float(epsilon) <= 700:
        _check_meaning(bundle.page, float(epsilon), float(delta))
    shape = "{} steps with one of {} states, one of {} actions and a reward from {:g} to {:g}."
    sizes = [bundle.size(kind) for kind in ("steps", "states", "actions")]
    for name, due in {
        "Flavour": "Approximate DP" if float(delta) else "Pure DP",
        "Privacy unit": unit,
        "Deployment model": trust["model"],
        "Neighbours": f" and differ in {unit}, replaced by any other (replace-one).",
        "Parameters": f"{text}. ",
        "Data domain": shape.format(*sizes, *bundle.reward_range),
    }.items():
        stated = bundle.page.fact(0, name)
        right = due in stated if due[-1] in ". " else stated == due
        expect(right, f"{name!r} on the first page is {stated!r}, not {due!r}")
    expect(bundle.page.fact(0, "Trust") in first.partition("What is guaranteed")[0], "other trust")
    return text


def _check_meaning(page: Page, epsilon: float, delta: float) -> None:
    """Odds and risks are those of epsilon and delta, both of which are rounded up."""
    least, most = (_meaning(math.exp(e), delta) for e in (epsilon / float(ROUNDED), epsilon))
    for pattern, low, high in zip(MEANING, least, most, strict=True):
        said = re.findall(pattern, page.texts[0]) + re.findall(pattern, page.texts[1])
        right = [0.999 * low <= float(text) <= 1.02 * high for text in said]
        expect(bool(said) and all(right), f"the page says {pattern!r} with {said}, not {high:.4g}")


def _meaning(factor: float, delta: float) -> tuple[float, ...]:
    right = min(1.0, (factor + delta) / (factor + 1))
    return factor, 100 * right, factor + 1000 * delta, min(100.0, factor + 100 * delta)


def _guaranteed(text: str) -> tuple[str, str, str, str]:
    """Epsilon, delta, notion and unit of a guarantee."""
    found = GUARANTEE.search(text)
    expect(found is not None, f"no guarantee can be read in {text!r}")
    epsilon, delta, notion, unit = found.groups() if found else ("",) * 4
    Decimal(epsilon), Decimal(delta)  # numbers, or refused
    return epsilon, delta, notion, unit


def check_certificates(bundle: Bundle) -> str:
    """Every certificate is proven again, and is one of this study and of this page."""
    page, names = bundle.page, bundle.certificates
    says_so = page.fact(0, "The noise") == "certified"
    if not says_so:
        page.says(0, "The noise", "not certified: see section 5")
    inside = "".join(bundle.read(name).decode().strip() for name in names)
    expect(page.unread["pre"] == inside, "section 5 of the page prints other certificates")
    expect(page.saved.keys() == set(names), "the page holds other certificates")
    digests = [row[1] for row in page.rows[9] if row[0] == "certificate"]
    if not names:
        expect(not says_so, "the page says that the noise is certified, and nothing is")
        return "the noise is not certified, and the page says so"
    verifier = _verifier(bundle)
    sizes = set()
    for name in names:
        say(f"      proving {name} again ...")
        expect(page.saved[name] == bundle.read(name), f"{name} is not the one in the page")
        data = verifier.read(str(bundle.folder / name))
        expect(data.get("digest") == verifier.digest(data), f"{name} does not have its digest")
        expect(data["digest"] in digests, f"{name} is not listed in section 9 of the page")
        try:
            verifier.check(data)
        except verifier.Refused as error:
            raise Refused(f"{name} is no proof: {error}") from None
        _check_release(bundle, name, data)
        sizes.add(data["release"].get("users"))
    uncertified = {entry["users"] for entry in bundle.batches} - sizes if None not in sizes else ()
    if uncertified and says_so:
        expect(max(uncertified) < min(sizes), "a larger batch than the certified ones has no proof")
    more = f"; {len(uncertified)} smaller sizes of batches are not" if uncertified else ""
    return f"{', '.join(names)} proven{more}"


def _verifier(bundle: Bundle) -> ModuleType:
    """The `verify.py` of the bundle."""
    spec = importlib.util.spec_from_file_location("verify", bundle.folder / "verify.py")
    expect(spec is not None and spec.loader is not None, "verify.py cannot be loaded")
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def _check_release(bundle: Bundle, name: str, data: Any) -> None:
    """Every field is settled: by the design and the ledger (`settled`), or by the proof itself."""
    release, due = data["release"], settled(bundle, data["release"])
    for field in [*due, *release]:
        expect(field in due, f"{name} says {field!r}, which nothing of this study settles")
        said, allowed = json.dumps(release.get(field)), [json.dumps(each) for each in due[field]]
        expect(said in allowed, f"{name} is about {field} {said}, not {' or '.join(allowed)}")
    epsilon, delta, _, _ = _guaranteed(bundle.entries[-1]["guarantee"])
    for field, stated in (("epsilon", epsilon), ("delta", delta)):
        proven = bundle.releases * Fraction(data[field])
        expect(proven <= Fraction(stated), f"{name} proves a larger {field} than is guaranteed")
    for field in sorted(set(data) - {"release", "epsilon", "delta", *PROVEN}):
        raise Refused(f"{name} says {field!r}, which nothing of this study settles")
    page = bundle.page
    page.says(5, "mechanism", release["mechanism"])
    page.says(5, "statistics", ", ".join(release["statistics"]))
    page.says(5, "noise distribution", data["noise"]["name"])
    if name == bundle.certificates[0]:
        for field, value in data["noise"].items():
            text = json.dumps(value) if isinstance(value, list | dict) else str(value)
            shown = field == "name" or page.fact(5, f"its {field}, exactly").startswith(text[:150])
            expect(shown, f"the page prints another {field} of the noise than {name}")


def settled(bundle: Bundle, release: Any) -> dict[str, list[Any]]:
    """What a certificate may say of the release, field by field: any of these, and nothing else.

    The mechanism is the design's, or one of those that ``auto`` compares; all the rest follows.
    """
    design, trust = bundle.design, bundle.design["trust"]
    learner, asked, known = design["learner"], trust["mechanism"], ", ".join(LEARNERS)
    expect(learner in LEARNERS, f"what {learner!r} has released is not known here, only of {known}")
    statistics, last = LEARNERS[learner]
    if design["settings"].get("structure") == "paper":
        statistics = ALL
    without = (trust["model"], release.get("mechanism")) in WITHOUT_LAST
    kept = last or design["stationary"] or not without
    central = trust["model"] == "Central" and statistics != PAIR
    found: dict[str, list[Any]] = {
        "trust": [trust["model"].lower()],
        "schedule": ["batch"],
        "mechanism": AUTO[trust["model"]] if asked == "auto" else [asked],
        "participations": [trust["participations"]],
        "states": [bundle.size("states")],
        "actions": [bundle.size("actions")],
        "horizon": [bundle.size("steps")],
        "statistics": [statistics],
        "last_transitions": [kept or central],
    }
    if trust["model"] == "Shuffle":
        sizes = {entry["users"] for entry in bundle.batches}
        found["honest"] = [str(Fraction(repr(trust["honest"])))]
        found["users"] = [None, *(sorted(sizes) or [release.get("users")])]  # null: of every batch
    return found


def check_policy(bundle: Bundle) -> str:
    """The policy is the one that the ledger recorded, and the one that the page shows."""
    said, rows, known = bundle.policy, bundle.policy["policy"], bundle.names("actions")
    expect(said["head"] == bundle.head, "the policy is that of another head")
    expect(said["guarantee"] == bundle.entries[-1]["guarantee"], "the policy promises otherwise")
    expect(len(rows) == bundle.size("steps") * bundle.size("states"), "the policy is not whole")
    numbers = b"".join(known.index(row["action"]).to_bytes(8, "little") for row in rows)
    digest = hashlib.blake2b(b"d" + numbers, digest_size=16).hexdigest()
    bundle.page.says(9, "policy of section 7", digest)
    counting = [entry for entry in bundle.entries if entry["kind"] in ("batch", "close")]
    recorded = counting[-1].get("recommends") if counting else None
    expect(recorded in (None, digest), f"the ledger recorded the policy {recorded}, not {digest}")
    worth = _worth(bundle, **said["value"])
    expect(
        f"Worth {worth}" in bundle.page.texts[7], f"the page does not say that it is worth {worth}"
    )
    _check_cells(bundle.page.rows[7], rows, bundle.size("states"))
    return f"{digest}, {'recorded by the ledger' if recorded else 'of an unfinished study'}"


def _worth(bundle: Bundle, value: float, low: float, high: float) -> str:
    """The value as the page says it: not known where it may be nearly anything."""
    expect(low <= value <= high, f"the policy is worth {value}, which is outside its interval")
    least, most = bundle.reward_range
    if high - low > 0.99 * (most - least) * bundle.size("steps"):
        return "not known yet"
    digits = max(0, 2 - math.floor(math.log10(high - low))) if high > low else 3
    return f"{value:,.{digits}f} (95% interval {low:,.{digits}f} to {high:,.{digits}f})"


def _check_cells(shown: list[list[str]], rows: list[Any], states: int) -> None:
    """The table of section 7: states by steps, or a row for each."""
    wide, head = shown[0][0] == "state", 1
    for number, row in enumerate(rows):
        place = number % states if wide else number
        if place + head >= len(shown):  # the page says that it shows the first 2,000
            continue
        cells = shown[place + head]
        named = [row["state"]] if wide else [row["step"], row["state"]]
        cell = cells[1 + number // states] if wide else cells[2]
        action = row["action"]
        right = cell == (f"({action})" if row["defer"] else f"{action} {_evidence(row)}")
        expect(right and cells[: len(named)] == named,
               f"section 7 of the page says {cell!r} at {row['step']}, {row['state']}")  # fmt: skip


def _evidence(row: Any) -> str:
    """The difference and its standard error, both to the error's second digit."""
    value, error = row["difference"], row["standard_error"]
    digits = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 3
    return f"{value:+,.{digits}f} ± {error:,.{digits}f}"


def check_page(bundle: Bundle) -> str:
    """The page has known looks and words, true versions and no hash but those that were checked."""
    page = bundle.page
    expect(not page.strange, f"the page has {page.strange[:3]}, which could hide or cover a text")
    expect(sha256(page.unread["style"].strip().encode()) == LOOKS, "the page has another style")
    notion = NOTIONS[bundle.design["trust"]["model"]]
    expect(page.words == WORDS[notion], f"the page does not explain {notion} as this program does")
    ran = sorted({_plain(entry["software"]) for entry in bundle.entries})
    said = [row[1] for row in page.rows[9] if row[0] == "software of the study's entries"]
    expect(said == ran, f"the page says that {said} ran, the ledger {ran}")
    design = sha256(bundle.read("design.json"))
    known = {bundle.head, design, bundle.page.fact(9, "its source files, SHA-256")}
    known |= {row[1] for row in bundle.page.rows[9] if row[0] == "certificate"}
    found = {
        each
        for text in bundle.page.texts.values()
        for each in re.findall(r"\b[0-9a-f]{64}\b", text)
    }
    for digest in sorted(found - known):
        raise Refused(f"the page names {digest}, which is nothing of this study")
    return f"{len(found)} hashes on it, all known"


CHECKS: tuple[tuple[str, Callable[[Bundle], str]], ...] = (
    ("files", check_files),
    ("ledger", check_ledger),
    ("participants", check_participants),
    ("design", check_design),
    ("guarantee", check_guarantee),
    ("certificates", check_certificates),
    ("policy", check_policy),
    ("page", check_page),
)


def main(arguments: list[str]) -> int:
    """0 if everything that can be checked here agrees, 1 if not."""
    parser = argparse.ArgumentParser(description="Check every claim of the dossier beside this.")
    parser.add_argument("--head", help="the head that you were given on another way")
    given = parser.parse_args(arguments)
    sys.dont_write_bytecode = True
    bundle = Bundle(Path(__file__).resolve().parent, given.head)
    failed = 0
    for name, check in CHECKS:
        try:
            say(f"ok    {name}: {check(bundle)}")
        except Exception as error:  # an edited file can raise anything
            failed += 1
            said = error if isinstance(error, Refused) else f"cannot be read ({error!r:.200})"
            say(f"FAIL  {name}: {said}")
    if given.head is None:
        say("note  No --head was given: that this is the newest state is the operator's word.")
    say("note  This program and verify.py beside it are trusted. Compare their SHA-256 with those")
    say("note  of study/dossier/review.py and privacy/certificates/verify.py in discreet's source:")
    for name in ("review.py", "verify.py"):
        say(f"note  {sha256(bundle.read(name))}  {name}")
    for text in UNCHECKED:
        say(f"note  Not checked here: {text}.")
    say(f"{failed} of {len(CHECKS)} checks FAILED." if failed else "All that was compared agrees.")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
