"""Check a study's bundle: python -I review.py [--head HEAD].

One file, standard library. Nothing of the project is imported but `page.py` and `verify.py`, which
stand beside it, stand alone and are trusted. What is checked:

- every file has the SHA-256 that `SHA256SUMS` says, and no other file is there;
- `dossier.html` is, byte for byte, the page that `page.py` makes of the other files;
- the entries of `ledger.jsonl` quote each other's hashes up to the head;
- the digests in `participants.bin` are those that the entries quote; nobody is in a batch twice,
  or in more batches than the guarantee allows;
- `design.json` is what the first entry quotes, and the guarantee of the last is the design's;
- every certificate is proven again, for the design's epsilon and delta, and is about the release of
  this design in every field (`settled`); Gaussian and Laplace noise is that of facts.json;
- `policy.json` is the policy that the ledger recorded, for this head and this guarantee.

What no other file says is in `facts.json`, the operator's word; what is not compared is printed at
the end (`UNCHECKED`): read it.

Who can edit one file can edit all of them, this one included. So get the head, and the SHA-256 of
the zip file, from the operator on another way (on paper, by telephone), and give the head.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # no file beside this one takes the place of a module

import argparse
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

SUMS = "SHA256SUMS"
PROGRAMS = ("review.py", "page.py", "verify.py")
"""Which are trusted: their SHA-256 is printed."""
DIGEST = 16
"""Bytes of a participant's digest."""
ROUNDED = Fraction(1001, 1000)
"""Printed numbers have four digits, rounded up."""
PAIR, ALL = ["transitions", "rewards"], ["transitions", "visits", "rewards"]
LEARNERS = {
    **dict.fromkeys(("explore-then-commit", "flow-ucb", "trial"), (PAIR, False)),
    **dict.fromkeys(("pe", "sdp-pe"), (PAIR, True)),
}
"""Learner -> the statistics that it has released, and whether with the last step's transitions."""
AUTO = {"Central": ["gaussian", "laplace"], "Local": ["split"], "Shuffle": ["histogram"]}
"""Trust -> the mechanisms that ``auto`` may take."""
WITHOUT_LAST = {("Central", "gaussian"), ("Central", "laplace"), ("Local", "split"),
                ("Shuffle", "histogram")}  # fmt: skip
"""Which can leave out transitions of the last step (a curator: of these two statistics alone)."""
PROVEN = ("format", "noise", "method", "bound", "digest")
"""What a certificate says besides; `verify.py` refuses it unless it is enough for the release."""
UNCHECKED = (
    "all that facts.json says: how the study ended, the assumptions (section 1), settings beyond "
    "the design's (4), the deviation of the noise (5), the audit (6, `discreet audit` repeats it), "
    "what such a study finds, today's value and the notes (7), the page's own software (9)",
    "the value of the policy, its differences, standard errors and where it defers: the ledger "
    "records the actions alone, and the noisy counts stay with the operator",
    "which of the mechanisms that `auto` may take was taken; before a batch was counted, for how "
    "many people a certificate of shuffled messages is",
    "that the noise drawn was the one a certificate names, beyond that it is enough: `discreet "
    "audit` tries the installed program",
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


def misread(bundle: "Bundle") -> str:
    """What is said of files that raise; the one of no JSON is named."""
    which = "a file"
    for name in sorted(bundle.files):
        try:
            if name.endswith(".json"):
                json.loads(bundle.files[name])
        except (ValueError, RecursionError):
            which = name
    return f"{which} does not have the form that page.py reads; one was edited or is missing"


class Bundle:
    """The files of a folder, what they say, and the two programs among them."""

    def __init__(self, folder: Path, head: str | None = None) -> None:
        self.folder, self.known_head = folder, head
        self.files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def read(self, name: str) -> bytes:
        """The content of a file."""
        expect(name in self.files, f"{name} is missing")
        return self.files[name]

    def program(self, name: str) -> Any:
        """One that stands beside this one: these bytes, and no compiled ones."""
        module = ModuleType(Path(name).stem)
        exec(compile(self.read(name), name, "exec"), module.__dict__)
        return module

    @cached_property
    def page(self) -> Any:
        return self.program("page.py")

    @cached_property
    def said(self) -> Any:
        """What the files say, as `page.py` reads them."""
        return self.page.Content(self.files)


def check_files(bundle: Bundle) -> str:
    """Nothing was changed, lost or added since the bundle was made."""
    text = bundle.read(SUMS).decode("ascii")
    listed = {name: digest for digest, _, name in (x.partition("  ") for x in text.splitlines())}
    there = {path.name for path in bundle.folder.iterdir()}
    whole = "".join(f"{digest}  {name}\n" for name, digest in listed.items())
    expect(text == whole, f"{SUMS} was changed")
    for name in sorted({*listed, SUMS} - set(bundle.files)):
        raise Refused(f"{name} is missing")
    for name in sorted(there - {*listed, SUMS}):
        raise Refused(f"{name} is not of this bundle: take it away")
    for name, digest in listed.items():
        expect(sha256(bundle.read(name)) == digest, f"{name} was changed: its SHA-256 is another")
    return f"{len(listed)} files are those that {SUMS} lists"


def check_page(bundle: Bundle) -> str:
    """The page is made again, and every byte is the same."""
    made, there = bundle.page.render(bundle.files), bundle.read("dossier.html")
    lines = enumerate(zip(made.splitlines(), there.splitlines(), strict=False), 1)
    for number, (due, line) in lines:
        same = due == line
        expect(same, f"line {number} of dossier.html is {line[:60]!r}, and {due[:60]!r} is made")
    expect(made == there, "dossier.html is longer or shorter than the page of the other files")
    return f"{len(there):,} bytes are those that page.py makes of the other files"


def check_ledger(bundle: Bundle) -> str:
    """The chain up to the head."""
    said, head, closed = bundle.said, "", False
    for number, (line, entry) in enumerate(zip(said.lines, said.entries, strict=True)):
        follows = entry["number"] == number and entry["previous"] == head and not closed
        expect(follows, f"entry {number} does not follow the one before it")
        kinds = ("start",) if number == 0 else ("batch", "reissue", "extend", "close")
        expect(entry["kind"] in kinds, f"entry {number} is of no known kind")
        closed = entry["kind"] == "close"
        head = sha256(line)
    if bundle.known_head is not None:
        expect(head == bundle.known_head, f"the head is {head}, not {bundle.known_head}")
    batches = f"{len(said.batches):,} batch{'' if len(said.batches) == 1 else 'es'}"
    return f"{len(said.entries):,} entries, {said.users:,} users, {batches}, head {head}"


def check_participants(bundle: Bundle) -> str:
    """Nobody was counted more often than is guaranteed for; who they are nobody can see here.

    Batches that came through a service have no names: what was counted are uses of tickets.
    """
    data = bundle.read("participants.bin")
    most = bundle.said.design["trust"].get("participations", 1)
    seen, begin = Counter[bytes](), 0
    for entry in bundle.said.batches:
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
    if any("manifest" in (entry.get("note") or {}) for entry in bundle.said.batches):
        return (
            f"{len(seen):,} uses of tickets, each counted once; how many people they are, and that "
            f"no ticket was used more than {most} times, only the service's shuffler can say"
        )
    return f"{len(seen):,} different participants, each counted at most {max(often, 1)} of {most}"


def check_design(bundle: Bundle) -> str:
    """The design is what the first entry quotes."""
    digest, design = sha256(bundle.read("design.json")), bundle.said.design
    quoted = bundle.said.entries[0]["config"]
    expect(digest == quoted, "the ledger began with another design")
    return f"{digest}, {design['learner']}, {design['trust']['model']}"


def check_guarantee(bundle: Bundle) -> str:
    """The last entry guarantees what the design asks for, and so did the first."""
    said, trust = bundle.said, bundle.said.design["trust"]
    simulated = bundle.page.SIMULATED
    for entry, releases in ((said.entries[0], 1), (said.entries[-1], said.releases)):
        text = str(entry["guarantee"])
        notion, epsilon, delta, unit = bundle.page.guaranteed(text)
        due = bundle.page.NOTIONS[trust["model"]]
        expect(notion == due, f"the ledger guarantees {notion}, the design {due}")
        if notion == "none":
            continue
        rehearsed = said.design["sampler"] != "secure"
        expect(text.startswith(simulated) == rehearsed, "the ledger hides, or invents, a rehearsal")
        most = trust["participations"]
        whole = "one user's whole episode" if most == 1 else f"one person, up to {most} episodes"
        expect(unit == whole, f"the ledger protects {unit}, the design {whole}")
        for name, stated in (("epsilon", epsilon), ("delta", delta)):
            largest = releases * Fraction(repr(trust[name])) * ROUNDED
            expect(Fraction(stated) <= largest, f"the {name} {stated} is above the design's")
    return " ".join([text if not said.weak else f"{text}. BUT:", *said.weak])


def check_certificates(bundle: Bundle) -> str:
    """Every certificate is proven again, and is one of this study."""
    said, sizes = bundle.said, set[int | None]()
    if not said.certificates:
        return "the noise is not certified, and the page says so"
    verifier = bundle.program("verify.py")
    for name in said.certificates:
        say(f"      proving {name} again ...")
        data = verifier.read(str(bundle.folder / name))
        expect(data.get("digest") == verifier.digest(data), f"{name} does not have its digest")
        try:
            verifier.check(data)
        except verifier.Refused as error:
            raise Refused(f"{name} is no proof: {error}") from None
        _check_release(bundle, name, data)
        sizes.add(data["release"].get("users"))
    left = {entry["users"] for entry in said.batches} - sizes if None not in sizes else set()
    most = max((size for size in sizes if size), default=0)
    expect(max(left, default=0) <= most, "a larger batch than the certified ones has no proof")
    more = f"; {len(left)} smaller sizes of batches are not" if left else ""
    return f"{', '.join(said.certificates)} proven{more}"


def _check_release(bundle: Bundle, name: str, data: Any) -> None:
    """Every field is settled: by the design and the ledger (`settled`), or by the proof itself."""
    release, due = data["release"], settled(bundle, data["release"])
    for field in [*due, *release]:
        expect(field in due, f"{name} says {field!r}, which nothing of this study settles")
        said, allowed = json.dumps(release.get(field)), [json.dumps(each) for each in due[field]]
        expect(said in allowed, f"{name} is about {field} {said}, not {' or '.join(allowed)}")
    stated = bundle.said.guarantee
    for field, most in (("epsilon", stated.epsilon), ("delta", stated.delta)):
        proven = bundle.said.releases * Fraction(data[field])
        expect(proven <= Fraction(most), f"{name} proves a larger {field} than is guaranteed")
        share = bundle.said.design["trust"][field]
        exact = min(Fraction(repr(share)), Fraction(share)) if Fraction(most) else Fraction(0)
        other = f"{name} is for {field} {data[field]}, and this design's is {exact}"
        expect(Fraction(data[field]) == exact, other)
    for field in sorted(set(data) - {"release", "epsilon", "delta", *PROVEN}):
        raise Refused(f"{name} says {field!r}, which nothing of this study settles")
    _check_deviation(bundle, name, data["noise"])


def _check_deviation(bundle: Bundle, name: str, noise: Any) -> None:
    """The noise that is proven to be enough is the one of section 5, where one number says both."""
    laplace = noise["name"] == "discrete-laplace"
    size = float(Fraction(noise.get("scale" if laplace else "sigma", 0)))
    if size < 1:  # of other noise, or so little that integers have another deviation
        return
    named = math.sqrt(0.5) / math.sinh(0.5 / size) if laplace else size
    said = dict(bundle.said.facts["noise"])["noise on a counter of transitions"].split()[0]
    agrees = abs(float(said.replace(",", "")) - named) <= named / 1000  # four digits
    expect(agrees, f"{name} names noise of deviation {named:.6g}, and facts.json says {said}")


def settled(bundle: Bundle, release: Any) -> dict[str, list[Any]]:
    """What a certificate may say of the release, field by field: any of these, and nothing else.

    The mechanism is the design's, or one of those that ``auto`` compares; all the rest follows.
    """
    said, design, trust = bundle.said, bundle.said.design, bundle.said.design["trust"]
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
        "states": [len(said.names("states"))],
        "actions": [len(said.names("actions"))],
        "horizon": [len(said.names("steps"))],
        "statistics": [statistics],
        "last_transitions": [kept or central],
    }
    if trust["model"] == "Shuffle":
        sizes = {entry["users"] for entry in said.batches}
        found["honest"] = [str(Fraction(repr(trust["honest"])))]
        found["users"] = [None, *(sorted(sizes) or [release.get("users")])]  # null: of every batch
    return found


def check_policy(bundle: Bundle) -> str:
    """The policy is the one that the ledger recorded, of this head and this guarantee."""
    said, policy = bundle.said, bundle.said.policy
    expect(policy["head"] == said.head, "the policy is that of another head")
    expect(policy["guarantee"] == said.entries[-1]["guarantee"], "the policy promises otherwise")
    cells = [(step, state) for step in said.names("steps") for state in said.names("states")]
    named = [(row["step"], row["state"]) for row in policy["policy"]]
    expect(named == cells, "the policy is not whole, or not in the order of the design")
    counting = [entry for entry in said.entries if entry["kind"] in ("batch", "close")]
    recorded = counting[-1].get("recommends") if counting else None
    right = recorded in (None, said.digest)
    expect(right, f"the ledger recorded the policy {recorded}, not {said.digest}")
    value, low, high = (policy["value"][name] for name in ("value", "low", "high"))
    expect(low <= value <= high, f"the policy is worth {value}, which is outside its interval")
    return f"{said.digest}, {'recorded by the ledger' if recorded else 'of an unfinished study'}"


CHECKS: tuple[tuple[str, Callable[[Bundle], str]], ...] = (
    ("files", check_files),
    ("page", check_page),
    ("ledger", check_ledger),
    ("participants", check_participants),
    ("design", check_design),
    ("guarantee", check_guarantee),
    ("certificates", check_certificates),
    ("policy", check_policy),
)


def main(arguments: list[str]) -> int:
    """0 if everything that can be checked here agrees, 1 if not."""
    parser = argparse.ArgumentParser(description="Check every claim of the dossier beside this.")
    parser.add_argument("--head", help="the head that you were given on another way")
    given = parser.parse_args(arguments)
    sys.dont_write_bytecode = True
    bundle = Bundle(Path(__file__).resolve().parent, given.head)
    say("note  This program and the two beside it are trusted. Compare these SHA-256 with those of")
    say(
        "note  study/dossier/review.py, study/dossier/page.py and privacy/certificates/verify.py in"
    )
    say("note  discreet's source:")
    for name in PROGRAMS:  # before any of them runs
        say(f"note  {sha256(bundle.files.get(name, b''))}  {name}")
    failed = 0
    for name, check in CHECKS:
        try:
            say(f"ok    {name}: {check(bundle)}")
        except OSError:  # nobody reads what is said
            raise
        except Exception as error:  # an edited file can raise anything
            failed += 1
            say(f"FAIL  {name}: {error if isinstance(error, Refused) else misread(bundle)}")
    if given.head is None:
        say("note  No --head was given: that this is the newest state is the operator's word.")
    for text in UNCHECKED:
        say(f"note  Not checked here: {text}.")
    say(f"{failed} of {len(CHECKS)} checks FAILED." if failed else "All that was compared agrees.")
    return int(failed > 0)


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"Nothing is confirmed: {error}.\n")
        os._exit(1)  # at the exit, what could not be written would be tried again
    raise SystemExit(code)
