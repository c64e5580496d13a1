"""The dossier: one page for the reviewer who must sign a study, made of the files of its bundle.

Standard library, and nothing of the project: `review` renders the page again from the files beside
it and compares every byte. What no other file says stands in ``facts.json``, the operator's word.
Nothing is loaded from elsewhere, so the page can be printed, mailed and kept; values are escaped.
"""

import base64
import hashlib
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

SIMULATED = "SIMULATED, protects nobody"
WEAK = (
    "Batch {} was counted with less noise than was promised, as the operator decided: the stated "
    "epsilon does not hold for it."
)
NOTIONS = {"Central": "JDP", "Local": "LDP", "Shuffle": "SDP", "NoPrivacy": "none"}
_GUARANTEE = re.compile(r"\(([^,]+), ([^)]+)\)-(JDP|LDP|SDP)(?: by [^,]+)?, (.+), replace-one")
# Okabe and Ito's colours, which people of all kinds of sight tell apart, and on paper too.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00", "#999999")
_SQUARE, _LEFT, _TOP = 34, 150, 26
_MOST_STATES, _MOST_STEPS = 60, 40
_ENDS = 20
"""Entries of a long ledger that are shown at each end."""
_MOST_ROWS = 2_000
_WIDEST = 12
"""Steps of a policy that stand side by side."""
NEWLINE = "\n"
"""Which no expression in an f-string may spell before Python 3.12."""


class Guaranteed(NamedTuple):
    """What the text of a guarantee says; both numbers are rounded up there."""

    notion: str
    epsilon: str = ""
    delta: str = ""
    unit: str = ""

    def __str__(self) -> str:
        pair = f"ε = {self.epsilon}, δ = {self.delta} ({self.notion})"
        return "nothing" if self.notion == "none" else pair


def guaranteed(text: str) -> Guaranteed:
    """A guarantee as an entry of the ledger states it.

    >>> print(guaranteed("(1.5, 1e-06)-JDP, one user's whole episode, replace-one"))
    ε = 1.5, δ = 1e-06 (JDP)
    """
    if text == "no privacy":
        return Guaranteed("none")
    found = _GUARANTEE.search(text)
    if found is None:
        raise ValueError(f"no guarantee can be read in {text!r}")
    epsilon, delta, notion, unit = found.groups()
    Decimal(epsilon), Decimal(delta)  # numbers, or refused
    return Guaranteed(notion, epsilon, delta, unit)


class Content:
    """What the files of a bundle say, each read when it is first needed."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    @cached_property
    def design(self) -> Any:
        return json.loads(self.files["design.json"])

    @cached_property
    def facts(self) -> Any:
        return json.loads(self.files["facts.json"])

    @cached_property
    def policy(self) -> Any:
        return json.loads(self.files["policy.json"])

    @cached_property
    def lines(self) -> list[bytes]:
        return self.files["ledger.jsonl"].splitlines()

    @cached_property
    def entries(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    @cached_property
    def certificates(self) -> dict[str, Any]:
        """By the names of their files."""
        names = sorted(name for name in self.files if re.fullmatch(r"certificate-\d\.json", name))
        return {name: json.loads(self.files[name]) for name in names}

    @property
    def batches(self) -> list[Any]:
        return [entry for entry in self.entries if entry["kind"] == "batch"]

    @property
    def weak(self) -> list[str]:
        """What is said of each batch that was counted with too little noise."""
        notes = [entry.get("note") or {} for entry in self.batches]
        return [WEAK.format(number) for number, note in enumerate(notes) if "accepted" in note]

    @property
    def users(self) -> int:
        return sum(int(entry["users"]) for entry in self.batches)

    @property
    def episodes(self) -> int:
        """How many participations are planned."""
        planned = [entry["episodes"] for entry in self.entries if entry["kind"] == "extend"]
        return int([self.design["episodes"], *planned][-1])

    @property
    def head(self) -> str:
        return hashlib.sha256(self.lines[-1]).hexdigest()

    @property
    def releases(self) -> int:
        """How often one user may have reported: all are charged."""
        return 1 + len([entry for entry in self.entries if entry.get("returning") == "seen"])

    @property
    def guarantee(self) -> Guaranteed:
        """Of all releases that a user can be in."""
        return guaranteed(self.entries[-1]["guarantee"])

    @property
    def reward_range(self) -> tuple[float, float]:
        least, most = self.design.get("table", {}).get("reward_range", (0, 1))
        return float(least), float(most)

    @property
    def digest(self) -> str:
        """Of the policy, as entries of the ledger quote it."""
        known = self.names("actions")
        actions = [known.index(row["action"]) for row in self.policy["policy"]]
        numbers = b"".join(action.to_bytes(8, "little") for action in actions)
        return hashlib.blake2b(b"d" + numbers, digest_size=16).hexdigest()

    def names(self, kind: str) -> list[str]:
        """What the states, actions or steps of the design are called."""
        given = self.design["names"][kind]
        return [str(name) for name in (range(given) if isinstance(given, int) else given)]


def render(files: Mapping[str, bytes]) -> bytes:
    """The page, from all other files of a bundle."""
    return _Page(files).whole().encode()


class _Page(Content):
    """Each section is the text of its method."""

    def whole(self) -> str:
        """The page."""
        facts, title = self.facts, f"Dossier of the study {escape(self.facts['name'])}"
        sections = (
            ("What is guaranteed, and to whom", self.promise()),
            ("Who is trusted with what", self.parties()),
            ("What is not protected", bullets(self.words["unprotected"] + NEVER)),
            ("Parameters", self.table(None, self.parameters())),
            ("The noise, and the proof that it is enough", self.noise()),
            ("Audit of this mechanism at this shape", self.audit()),
            ("What was learnt: the policy", self.learnt()),
            ("Batch by batch", self.history()),
            ("Versions and hashes", self.table(None, self.hashes(), code=(1,))),
            ("How to check every line yourself", self.checks()),
            ("Signature", self.signature()),
        )
        numbered = (f"<h2>{n}. {name}</h2>\n{text}" for n, (name, text) in enumerate(sections, 1))
        return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>{title}</title>
<style>
{STYLE}</style></head><body><h1>{title}</h1>
<p class="lead">Made {escape(facts["made"])} by discreet {escape(facts["software"]["discreet"])},
from the file with the head <code>{self.head}</code></p>
{self.banner}
{self.first_page()}
{NEWLINE.join(numbered)}
</body></html>
"""

    @property
    def words(self) -> Any:
        return WORDS[self.guarantee.notion]

    @property
    def rehearsed(self) -> bool:
        return SIMULATED in self.entries[-1]["guarantee"]

    @property
    def banner(self) -> str:
        said = f"""<div class="banner">{SIMULATED}. This is a rehearsal with seeded noise: whatever
this page says is guaranteed would be guaranteed by a study with secure noise. Do not sign it for
real people.</div>"""
        return said if self.rehearsed else ""

    def table(
        self, head: Sequence[str] | None, rows: Iterable[Sequence[object]], code: Iterable[int] = ()
    ) -> str:
        """Rows below a head; without one, facts with their names."""
        lines = ['<div class="scroll"><table>']
        lines += [f"<caption>{SIMULATED}</caption>"] if self.rehearsed else []
        if head is not None:
            lines.append(f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>")
        first = "<td>" if head else '<td class="k">'
        for row in rows:
            cells = [escape(str(cell)) for cell in row]
            cells = [f"<code>{x}</code>" if x and i in code else x for i, x in enumerate(cells)]
            lines.append(f"<tr>{first}{'</td><td>'.join(cells)}</td></tr>")
        return NEWLINE.join([*lines, "</table></div>"])

    def first_page(self) -> str:
        words, said, audit = self.words, self.numbers, self.facts["audit"]
        texts = [words["patient"], *([said[1], said[3]] if len(said) > 1 else said)]
        about = "".join(f"<p>{escape(text)}</p>" for text in texts)
        agrees = "nothing guaranteed, nothing to audit"
        if audit is not None:
            contradicted = "DOES NOT AGREE with the guarantee: see section 6"
            agrees = "agrees with the guarantee" if audit["holds"] else contradicted
        batches = f"{len(self.batches):,} batch{'' if len(self.batches) == 1 else 'es'}"
        counted = f"{self.users:,} of {self.episodes:,}, in {batches}"
        rows = [
            ("Participations", f"{counted}; the study {self.facts['ending'] or 'goes on'}"),
            ("The file", "verified: whole, and nobody counted more often than is guaranteed for"),
            ("The noise", "certified" if self.certified else "not certified: see section 5"),
            ("The audit", agrees),
            *([] if self.guarantee.notion == "none" else self.deployment()),
        ]
        return f"""{"".join(map(fails, self.weak))}<div class="cards three">
{card("Who is trusted", f'<p class="big">{escape(words["trusted"])}</p>')}
{card("What is guaranteed", f'<p class="big">{self.guarantee}</p>{about}', "yes")}
{card("What is not protected", bullets(NEVER[:1] + words["unprotected"][:2]), "not")}
</div><div class="cards">{card("Conditions", bullets(words["conditions"]))}
{card("Holds even if", bullets(words["even_if"]), "yes")}</div>
{self.table(None, rows)}"""

    @property
    def numbers(self) -> tuple[str, ...]:
        return in_numbers(*self.guarantee[:3])

    @property
    def certified(self) -> bool:
        return bool(self.certificates) and not self.facts["missing"]

    @property
    def mechanism(self) -> tuple[str, str]:
        """Its name and its statistics: a certificate's, or the operator's word."""
        for made in self.certificates.values():
            return made["release"]["mechanism"], ", ".join(made["release"]["statistics"])
        return self.facts["mechanism"], self.facts["statistics"]

    def deployment(self) -> Iterator[tuple[str, str]]:
        """Five rows that public registries of deployments ask for besides."""
        most, (mechanism, statistics) = self.design["trust"]["participations"], self.mechanism
        central = self.guarantee.notion == "JDP"
        source = "from the operating system" if central else "on each participant's device"
        source = f"from a seed ({SIMULATED})" if self.rehearsed else source
        charged = "A person's whole participation is charged."
        served = any("manifest" in (entry.get("note") or {}) for entry in self.batches)
        whom, takes = "people", "A person takes part"
        if served:  # who holds a ticket nobody knows here
            whom, takes = "tickets", "A ticket is used"
        if self.releases > 1:
            charged = f"A batch was opened again: {self.releases} releases are charged."
        for text in f"""\
Neighbours: the same participants, who differ in {self.guarantee.unit}, replaced by any other.
Releases: one for each batch of different {whom}, {len(self.batches):,} so far. {takes} \
{"once" if most == 1 else f"up to {most} times"}; nothing is renewed.
Composition: within a release exact, over all counters at once; batches are of different {whom}, \
or composed exactly for who comes again. {charged}
Post-processing: counts are made consistent, a model is estimated, a policy is computed, from \
releases alone.
Implementation: {mechanism} on counts of {statistics}. Noise is drawn as integers, exactly, \
{source}; releases are integers. Times are not hidden. The study's file holds no episode, and \
keyed digests of names.""".split(NEWLINE):
            name, _, said = text.partition(": ")
            yield name, said

    def promise(self) -> str:
        words, unit = self.words, ""
        if self.guarantee.notion != "none":
            unit = f"; unit: {escape(self.guarantee.unit)}; neighbours: replace-one"
        more = f"""
<p>One release has {guaranteed(self.entries[0]["guarantee"])}; a participant may be in more than
one, and all are charged: {self.guarantee} together.</p>"""
        return f"""{self.banner}
<h3>To everybody who takes part</h3>
<p>{escape(words["patient"])}</p>
{bullets(self.numbers)}
<h3>In mathematics: {words["name"]}</h3>
<p class="math">{words["formula"]}<br><b>{self.guarantee}</b>{unit}.</p>{
            "".join(map(fails, self.weak))
        }
<h3>It is stated under these assumptions</h3>
{bullets(self.facts["assumptions"])}{more if self.releases > 1 else ""}"""

    def parties(self) -> str:
        notes = [entry["note"] for entry in self.entries if isinstance(entry.get("note"), dict)]
        told = Counter(str(note["reports"]) for note in notes if "reports" in note)
        said = (f"{n:,} of {len(self.batches):,} batches: {text}." for text, n in told.items())
        table = self.table(("who", "sees", "is trusted"), [*self.words["parties"], FILE, OTHERS])
        return table + "".join(map(fails, said))

    def parameters(self) -> Iterator[tuple[str, str]]:
        design, states = self.design, self.names("states")
        starts, table = [states[i] for i in design["start_states"]], design.get("table", {})
        yield "learner", design["learner"]
        yield "trust model", plain(design["trust"])
        yield "participations in all", f"{design['episodes']:,}"
        for kind in ("states", "actions", "steps"):
            yield f"{kind} ({len(self.names(kind))})", listed(self.names(kind))
        rules = [
            f"in {', '.join(rule.get('states', ['every state']))} at "
            f"{', '.join(rule.get('steps', ['every step']))}: {', '.join(rule['actions'])}"
            for rule in design["names"].get("allowed", [])
        ]
        yield "possible actions", "; ".join(rules) or "all of them everywhere"
        everywhere = len(set(starts)) == len(states)
        yield "episodes begin in", "any state" if everywhere else listed(starts)
        yield "dynamics", "said not to depend on the step" if design["stationary"] else "by step"
        secure = design["sampler"] == "secure"
        yield "randomness", "of the operating system" if secure else SIMULATED
        yield "learner's settings", plain(self.facts["settings"] | design["settings"])
        for entry in self.entries:
            if entry["kind"] == "extend":
                planned, counted = f"{entry['episodes']:,} participations", f"{entry['total']:,}"
                yield "extended", f"to {planned} when {counted} were counted, and could be read"
        yield "how tables are read", plain(table)

    def noise(self) -> str:
        rows, proofs = list(zip(("mechanism", "statistics"), self.mechanism, strict=True)), ""
        proven = {made["release"].get("users") for made in self.certificates.values()}
        left = {entry["users"] for entry in self.batches} - proven
        for name, made in self.certificates.items():
            text, noise, users = self.files[name], dict(made["noise"]), made["release"].get("users")
            pair = f"delta({up(Fraction(made['epsilon']), 4)}) ≤ {up(Fraction(made['bound']), 9)}"
            kind = escape(noise.pop("name"))
            if not proofs:
                rows.append(("noise distribution", made["noise"]["name"]))
                rows += [(f"its {part}, exactly", exactly(value)) for part, value in noise.items()]
            proofs += f"""
<p class="holds">{f"A batch of {users:,}: " if users else ""}{pair} is proven for {kind} noise.</p>
<p>Digest <code>{escape(made["digest"])}</code>. <a download="{name}"
href="data:application/json;base64,{base64.b64encode(text).decode()}">Save {name}</a>.</p>
<details><summary>The file</summary><pre>{escape(text.decode())}</pre></details>"""
        proofs += "".join(map(fails, self.facts["missing"]))
        if self.certificates and left and None not in proven:
            proofs += fails(f"{len(left):,} smaller sizes of batches have no certificate here.")
        return f"""{self.table(None, [*rows, *self.facts["noise"]])}
<h3>Certificate</h3>
<p>A rigorous bound on δ(ε) of this noise, checked with integers by a program that imports nothing
of this library.</p>{proofs}"""

    def audit(self) -> str:
        found = self.facts["audit"]
        if found is None:
            return "<p>Nothing is guaranteed: there is nothing to audit.</p>"
        holds = '<p class="holds">Nothing contradicts the guarantee.</p>'
        rows = [
            ("guaranteed by one release", self.entries[0]["guarantee"]),
            ("delivered by the real code at this shape", found["exact"]),
            ("attack at this shape", found["attack"]),
        ]
        head = ("path", "kind", "guaranteed ε, δ", "exact ε", "holds")
        return f"""{holds if found["holds"] else fails("THE GUARANTEE IS CONTRADICTED.")}
{self.table(None, rows)}{"".join(fails(f"Problem: {text}") for text in found["problems"])}
<h3>Every path of {escape(found["name"])}, on a small problem with the same ε and δ</h3>
{self.table(head, found["paths"])}
<p class="small">An attack can convict, never acquit; the certificate is the proof.</p>"""

    def worth(self, value: Mapping[str, float]) -> str:
        """A value as it is said: not known where it may be nearly anything."""
        (least, most), wide = self.reward_range, value["high"] - value["low"]
        if wide > 0.99 * (most - least) * len(self.names("steps")):
            return "not known yet"
        digits = max(0, 2 - math.floor(math.log10(wide))) if wide > 0 else 3
        said, low, high = (f"{value[name]:,.{digits}f}" for name in ("value", "low", "high"))
        return f"{said} (95% interval {low} to {high})"

    def learnt(self) -> str:
        actions, (least, most), facts = self.names("actions"), self.reward_range, self.facts
        keys = "".join(
            f'<span class="key"><i style="background:{_COLOURS[number % len(_COLOURS)]}"></i>'
            f"{number + 1} {escape(name)}</span>"
            for number, name in enumerate(actions)
        )
        first = "the first possible action" if "allowed" in self.design["names"] else actions[0]
        head, rows, size = self.cells()
        cut = f"<p>The first {len(rows):,} of {size:,}.</p>" if len(rows) < size else ""
        return f"""{self.banner}
<p>Worth {self.worth(self.policy["value"])} per episode of {len(self.names("steps"))} steps,
rewards from {least:g} to {most:g} each: an estimate from the releases alone, with an interval by
normal approximation. What is done today, the first possible action everywhere, is worth
{self.worth(facts["today"])} by the same releases. Reading them costs no privacy.</p>
<p>{escape(facts["expected"])}</p>{"".join(map(fails, facts["notes"]))}
<p class="legend">{keys}
<span class="key"><i class="pale"></i>pale, in brackets: the study defers, the default
stays</span></p>
{self.picture()}
<h3>As a table</h3>
<p>With each recommendation: how much more it earns than the default, {escape(first)}, from there
on, ± one standard error of noise and chance.</p>
{self.table(head, rows)}
<p class="small">In brackets: the study defers, since no action is better than the default by two
standard errors.</p>{cut}"""

    def cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]], int]:
        """States by steps where that fits on paper, one row for each otherwise; how many in all."""
        rows, states, steps = self.policy["policy"], self.names("states"), self.names("steps")
        said = [
            f"({row['action']})" if row["defer"] else f"{row['action']} {evidence(row)}"
            for row in rows
        ]
        if len(steps) <= _WIDEST:
            wide = [(state, *said[s :: len(states)]) for s, state in enumerate(states[:_MOST_ROWS])]
            return ("state", *steps), wide, len(states)
        shown = zip(rows[:_MOST_ROWS], said, strict=False)
        long = [(row["step"], row["state"], text) for row, text in shown]
        return ("step", "state", "action"), long, len(rows)

    def picture(self) -> str:
        """One square per step and state, whose colour is the action."""
        actions, rows = self.names("actions"), self.policy["policy"]
        every, all_steps = self.names("states"), self.names("steps")
        states, steps = every[:_MOST_STATES], all_steps[:_MOST_STEPS]
        wide, high = _LEFT + _SQUARE * len(steps) + 10, _TOP + _SQUARE * len(states) + 8
        about = "The policy: steps from left to right, states from top to bottom, colour is action"
        lines = [
            f"""<svg viewBox="0 0 {wide} {high}" width="{wide}" role="img" aria-label="{about}"
font-family="system-ui, sans-serif" font-size="12">"""
        ]
        lines += [label(_LEFT + _SQUARE * h + 17, 18, x, 4, "middle") for h, x in enumerate(steps)]
        for s, state in enumerate(states):
            lines.append(label(_LEFT - 8, _TOP + _SQUARE * s + 21, state, 19, "end"))
            for row in rows[s :: len(every)][: len(steps)]:
                action = actions.index(row["action"])
                x, y = _LEFT + _SQUARE * all_steps.index(row["step"]), _TOP + _SQUARE * s
                title = f"{row['step']}, {row['state']}: {row['action']}"
                number, deferred, shade = str(action + 1), "", 1.0
                if row["defer"]:
                    number, deferred, shade = f"({number})", " (deferred: the default)", 0.25
                colour = _COLOURS[action % len(_COLOURS)]
                lines.append(
                    f"""<g><title>{escape(title)}{deferred}</title><rect x="{x}" y="{y}" width="32"
height="32" rx="3" fill="{colour}" fill-opacity="{shade:g}"/><text x="{x + 16}" y="{y + 20}"
text-anchor="middle">{number}</text></g>"""
                )
        lines.append("</svg>")
        if len(states) * len(steps) < len(rows):
            lines.append(
                f"<p>The picture shows the first {len(states)} states and {len(steps)} steps.</p>"
            )
        return NEWLINE.join(lines)

    def history(self) -> str:
        digests, said = [*(entry["previous"] for entry in self.entries[1:]), self.head], ""
        rows = [
            [*(entry.get(name, "") for name in ("number", "kind", "users", "asked")),
             str(entry.get("policy", ""))[:16], digest[:16]]
            for entry, digest in zip(self.entries, digests, strict=True)
        ]  # fmt: skip
        if len(rows) > 2 * _ENDS:
            said = (
                f"<p>{len(rows):,} entries; the first {_ENDS} and the last {_ENDS} are shown.</p>"
            )
            rows = rows[:_ENDS] + rows[-_ENDS:]
        return f"""<p>Each entry quotes the hash of the one before it, and those of its
participants, policy and statistics. Hashes are cut to 16 digits here.</p>{said}
{self.table(("entry", "what", "came", "asked for", "policy", "hash"), rows, code=(4, 5))}"""

    def hashes(self) -> Iterator[tuple[str, str]]:
        yield "ledger head", self.head
        yield "configuration (the study's identity)", self.entries[0]["config"]
        yield "policy of section 7", self.digest
        for made in self.certificates.values():
            yield "certificate", made["digest"]
        for text in sorted({plain(entry["software"]) for entry in self.entries}):
            yield "software of the study's entries", text
        yield "software of this page", plain(self.facts["software"])
        yield "its source files, SHA-256", self.facts["sources"]

    def checks(self) -> str:
        return f"""<p>The bundle is a zip file with this page and the files that it is made of: ask
the operator for it, or make it with the last command. <code>review.py</code> needs Python and
nothing else.</p>
{self.table(("claim", "needs", "command"), self.commands(), code=(2,))}
<p class="small">The proof that one participant moves the statistics no further than a certificate
says is in <code>verify.py</code>. What people do (keeping raw data, knowing two names for one
person) no command can see.</p>"""

    def commands(self) -> Iterator[tuple[str, str, str]]:
        """Every claim of the page, what checking it needs, and the command."""
        file, proofs = shlex.quote(self.facts["name"]), list(self.certificates)
        alone, own = "the bundle and Python", "the study's file and discreet"
        review, verify = "python -I review.py --head", f"discreet study verify {file} --head"
        yield "everything but what facts.json says", alone, f"{review} {self.head}"
        for name in proofs:
            yield f"the noise is enough ({name})", alone, f"python -I verify.py {name}"
        if self.facts["audit"] is not None:
            yield "the audit (6)", "discreet", self.facts["audit"]["command"]
        yield "the file is whole, and no older copy", own, f"{verify} {self.head}"
        for name in proofs[:1]:
            command = f"discreet certify --verify {name} --for {file}"
            yield "the certificate is of this study's noise", own, command
        yield "the policy (7)", own, f"discreet study policy {file} --json"
        yield "this page, and the bundle", own, f"discreet study bundle {file} --output review.zip"

    def signature(self) -> str:
        signed = "<div>Name of the {}</div><div>Place, date, signature</div>"
        return f"""{self.banner}
<p>This page is about the state of the study with the head <code>{self.head}</code>, and about no
later one.</p>
<div class="sign">{signed.format("operator")}{signed.format("reviewer")}</div>"""


def card(title: str, inside: str, kind: str = "") -> str:
    """A box on the first page."""
    return f'<div class="{f"card {kind}".strip()}"><h2>{title}</h2>{inside}</div>'


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def fails(text: str) -> str:
    """What its reader must not overlook."""
    return f'<p class="fails">{escape(text)}</p>'


def label(x: int, y: int, text: str, most: int, anchor: str) -> str:
    """A name in the picture, short there and whole in its title."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    place = f'<text x="{x}" y="{y}" text-anchor="{anchor}">'
    return f"{place}<title>{escape(text)}</title>{escape(short)}</text>"


def listed(names: Sequence[str]) -> str:
    """The first sixty."""
    more = f", … ({len(names):,} in all)" if len(names) > _MOST_STATES else ""
    return ", ".join(names[:_MOST_STATES]) + more


def plain(value: object) -> str:
    """A table of settings as text."""
    if not isinstance(value, dict):
        return str(value)
    parts = [f"{name} {plain(part)}" for name, part in value.items() if part is not None]
    return ", ".join(parts) or "as usual"


def exactly(value: object) -> str:
    """An exact number, and what it is about; a long one is cut."""
    text = json.dumps(value) if isinstance(value, list | dict) else str(value)
    if len(text) > 160:
        return f"{text[:150]}… (whole in the certificate)"
    top, _, bottom = text.partition("/")
    whole = top.isdigit() and bottom.isdigit()
    return f"{text} ≈ {int(top) / int(bottom):.6g}" if whole else text


def evidence(row: Any) -> str:
    """The difference and its standard error, both to the error's second digit.

    >>> evidence({"difference": 33.41, "standard_error": 16.52})
    '+33 ± 17'
    """
    value, error = row["difference"], row["standard_error"]
    digits = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 3
    return f"{value:+,.{digits}f} ± {error:,.{digits}f}"


def up(value: float | Fraction, digits: int = 3) -> str:
    """A number to read: the least one of so many digits that is not below it.

    >>> up(1.0001), up(0.1), up(Fraction(1, 3), 9), up(math.inf)
    ('1.01', '0.1', '0.333333334', 'inf')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING)
    if isinstance(value, Fraction):
        exact = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    else:
        exact = context.plus(Decimal(repr(float(value))))
    text = f"{float(exact):.{digits}g}"
    return text if Decimal(text) == exact else str(exact)


def in_numbers(notion: str, epsilon: float | str, delta: float | str = 0.0) -> tuple[str, ...]:
    """What epsilon and delta mean, in a few sentences; all numbers rounded up.

    A guess between two records, both as likely as not beforehand, is right with probability at
    most (e^epsilon + delta)/(e^epsilon + 1): its two errors obey p + e^epsilon·q >= 1 - delta, and
    the same with p and q exchanged (Kairouz, Oh and Viswanath 2015).

    Odds: let somebody conclude A from what is seen. P(A | yours) <= e^epsilon·P(A | another) +
    delta, so odds of 1 to 9 become at most (e^epsilon + delta/P(A | another)) to 9, and
    P(A | another) >= 1/1000 is said. A risk is P(A | another) = 1/100.
    """
    if notion == "none":
        return ("Whoever sees what is published may learn everything.",)
    loss, failure = float(epsilon), float(delta)
    factor = math.exp(loss) if loss <= 700 else math.inf
    right = 1.0 if factor == math.inf else min(1.0, (factor + failure) / (factor + 1))
    odds = factor + 1000 * failure
    percent = 100.0 if odds == math.inf else 100 * odds / (odds + 9)
    usual = ", if they would conclude it from 1 in 1,000 other records, too" if failure else ""
    said = f"""\
Nothing that anybody can see becomes more than {up(factor)} times as likely or unlikely because of \
what your record says (e^ε, ε = {up(loss, 4)}).
Somebody who must guess which of two records is yours, and knows all the others, is right in at \
most {up(100 * right)}% of cases; a coin is right in 50%.
Somebody who gives odds of 1 to 9 (10%) on a secret of yours gives at most {up(odds)} to 9 \
({up(percent)}%) after seeing everything{usual}.
If what is published would harm 1 in 100 people with other records in your place, it harms at most \
{up(min(100.0, factor + 100 * failure))} in 100 with yours.""".split(NEWLINE)
    if loss > 10:
        said.append(f"This is weak: ε = {up(loss, 4)} is hardly a guarantee. Usual are 1 or a few.")
    if failure:
        chance = f"Beyond this there is a chance of failure δ = {up(failure)}"
        said.append(f"{chance}, at most one in {math.floor(1 / Fraction(repr(failure))):,}.")
    return tuple(said)


_SHARED = (
    "<i>E</i>, <i>F</i>: any two data sets that differ in all that one participant did in the "
    "study, the unit below (replace-one); <i>A</i>: any set of outcomes."
)
FILE = (
    "Who holds the study's file",
    "noisy statistics, policies, and digests of the participants' names with the key of these "
    "digests",
    "to keep the file as they keep the list of participants: with it a guessed name can be tested",
)
OTHERS = (
    "Everybody else, other participants included",
    "the policies, this page, who took part and how many",
    "nothing",
)
_DEVICE = ("The participant's own device", "its own raw episode")
_KNOWN = (
    "somebody knows all about a participant but the episode, from any other source, now or later;"
)
_TOGETHER = "all other participants work together against one"
_OTHERWISE = "participants take other actions than they are asked to;"
_ONCE = "Nobody is counted more often than is guaranteed for, under one name or several."
WORDS: dict[str, Any] = {
    "JDP": {
        "name": "joint differential privacy (central)",
        "trusted": "The operator is trusted with the raw episodes. Nobody else is.",
        "patient": "What others get to see of this study would look almost the same if your record "
        "were replaced by anybody else's, whatever is in it: how nearly the same is said below, "
        "and it holds even against all other participants together.",
        "formula": f"P[what all others receive ∈ <i>A</i> | <i>E</i>] ≤ <i>e</i><sup>ε</sup> · "
        f"P[what all others receive ∈ <i>A</i> | <i>F</i>] + δ. {_SHARED}",
        "parties": [
            (
                "The operator of the study",
                "every raw episode",
                "to use it for this study alone, to publish nothing but what this page lists, and "
                "to delete it",
            )
        ],
        "conditions": [
            "The operator shows the raw episodes to nobody, publishes nothing but policies and "
            "this page, and deletes them.",
            _ONCE,
            "What ran is the program of section 9, on a machine that nobody else controls.",
        ],
        "even_if": [
            f"{_TOGETHER}, and tell each other everything;",
            _KNOWN,
            _OTHERWISE,
            "the study's file is stolen, without the raw episodes: names can then be tested, "
            "episodes show no more than is guaranteed.",
        ],
        "unprotected": [
            "You are not protected from the operator, who holds your record.",
            "What you yourself are told to do depends on your own state: whoever looks over your "
            "shoulder sees it.",
        ],
    },
    "LDP": {
        "name": "local differential privacy",
        "trusted": "Nobody is trusted with a raw episode: it never leaves the participant's "
        "device.",
        "patient": "Your device scrambles your record before anything is sent. Whoever sees what "
        "it sends, the operator included, sees almost the same as if your record were anybody "
        "else's.",
        "formula": "P[reports ∈ <i>A</i> | <i>e</i>] ≤ <i>e</i><sup>ε</sup> · P[reports ∈ <i>A</i> "
        "| <i>f</i>] + δ. <i>e</i>, <i>f</i>: any two records of all that one participant did in "
        "the study, the unit below; <i>A</i>: any set.",
        "parties": [
            (*_DEVICE, "to add the noise, once, and to send nothing else"),
            ("The operator of the study", "one scrambled report per participant", "nothing"),
        ],
        "conditions": [
            "Each participant's own device draws its noise honestly, once, and sends nothing else.",
            _ONCE,
        ],
        "even_if": [
            "the operator is dishonest, keeps every report for ever and shows it to everybody;",
            f"{_TOGETHER};",
            _KNOWN,
            "the study's file is stolen.",
        ],
        "unprotected": [
            "A device that reports twice about one episode, or sends anything besides, tells more.",
            "That a report was sent, when, and from which address is not hidden.",
        ],
    },
    "SDP": {
        "name": "shuffle differential privacy",
        "trusted": "Nobody is trusted with a raw episode. The shuffler is trusted to mix the "
        "messages and not to collude with the analyser.",
        "patient": "Your device hides your record among random messages, and a shuffler mixes them "
        "with those of all others. What the analyser sees would look almost the same if your "
        "record were anybody else's.",
        "formula": f"P[mixed messages ∈ <i>A</i> | <i>E</i>] ≤ <i>e</i><sup>ε</sup> · "
        f"P[mixed messages ∈ <i>A</i> | <i>F</i>] + δ. {_SHARED}",
        "parties": [
            (*_DEVICE, "to add its noise messages (see the assumptions for how many must)"),
            (
                "The shuffler",
                "who sent, and sealed messages that it cannot read",
                "to mix all messages of a batch, to forward all of them, and not to collude with "
                "the analyser",
            ),
            ("The analyser", "the messages of all participants of a batch, mixed", "nothing"),
        ],
        "conditions": [
            "The shuffler mixes all messages of a batch, forwards all of them or none, and does "
            "not work with the analyser.",
            "As many participants as section 1 says draw their noise messages honestly.",
            _ONCE,
        ],
        "even_if": [
            "the analyser is dishonest and keeps everything that it is sent;",
            _KNOWN,
            _OTHERWISE,
            "the study's file is stolen.",
        ],
        "unprotected": [
            "If shuffler and analyser work together, they can see your episode: there is no "
            "guarantee to fall back on.",
            "Addresses and times at which messages were sent are not hidden by the mixing.",
        ],
    },
    "none": {
        "name": "no privacy",
        "trusted": "Everybody who sees what is published is trusted.",
        "patient": "Nothing is guaranteed to you.",
        "formula": "No bound.",
        "parties": [("The operator of the study", "every raw episode", "everything")],
        "conditions": ["Nothing is guaranteed."],
        "even_if": ["Nothing is guaranteed."],
        "unprotected": ["Your record is not protected from anybody."],
    },
}
"""What each notion of privacy guarantees, whom it trusts, what it leaves open, for people."""
NEVER = [
    "That you took part, in which batch, and how many did, is public.",
    "What is true of people in general can be learnt about you, whether you take part or not: if "
    "the study finds that a treatment helps, it helps you too.",
    "You are protected with all that is counted of you here under one name. If you take part under "
    "another name, or in another study, the guarantees add up.",
    "States, actions, reward range and cut points were fixed in public; nothing here can check "
    "that nobody chose them by looking at the data.",
    "How long computers took, and what other programs or people recorded, is outside of this.",
]
"""What no notion protects."""
STYLE = """\
:root { --ink: #1b1f24; --soft: #57606a; --line: #d8dee4; --paper: #f6f8fa; --bad: #b42318;
  --badback: #fef0ee; --good: #1a6b3c; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 3rem; color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; background: #fff; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 2px solid var(--ink);
  padding-bottom: .15rem; break-after: avoid; }
h3 { font-size: 1rem; margin: 1.1rem 0 .3rem; break-after: avoid; }
p, ul { margin: .4rem 0; } ul { padding-left: 1.2rem; }
.lead, small, .small { color: var(--soft); } .small { font-size: .88rem; }
.cards { display: grid; grid-template-columns: repeat(2, 1fr); gap: .9rem; margin: .9rem 0; }
.three { grid-template-columns: 4fr 7fr 5fr; }
.card { border: 1px solid var(--line); border-top: 4px solid var(--ink); border-radius: 6px;
  padding: .7rem .9rem; background: var(--paper); break-inside: avoid; }
.card h2 { border: 0; margin: 0 0 .3rem; font-size: 1.05rem; }
.card .big { font-size: 1.15rem; font-weight: 600; margin: .2rem 0; }
.card.not { border-top-color: var(--bad); } .card.yes { border-top-color: var(--good); }
.banner { background: var(--badback); color: var(--bad); border: 2px solid var(--bad);
  border-radius: 6px; padding: .6rem .9rem; font-weight: 700; margin: .8rem 0;
  break-inside: avoid; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
caption { text-align: left; color: var(--bad); font-weight: 700; font-size: .85rem; }
th, td { padding: .3rem .55rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.k { white-space: nowrap; color: var(--soft); } tr { break-inside: avoid; }
code, pre { font: .84rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--paper); padding: .6rem; white-space: pre-wrap; max-height: 22rem;
  overflow: auto; }
.math { background: var(--paper); border-left: 4px solid var(--line); padding: .5rem .8rem; }
.holds { color: var(--good); font-weight: 600; } .fails { color: var(--bad); font-weight: 700; }
svg { max-width: 100%; height: auto; display: block; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1rem; font-size: .9rem; }
.key i { display: inline-block; width: .9rem; height: .9rem; border-radius: 3px;
  margin-right: .35rem; vertical-align: -.1rem; } .key i.pale { background: #dfe7ee; }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem 2rem; margin-top: 1.6rem; }
.sign div { border-top: 1px solid var(--ink); padding-top: .2rem; margin-top: 2.2rem;
  font-size: .88rem; color: var(--soft); }
footer { color: var(--soft); font-size: .85rem; margin-top: 2rem; }
@media (max-width: 44rem) { body { font-size: 15px; padding: 1rem .8rem; }
  .cards, .sign { grid-template-columns: 1fr; } h1 { font-size: 1.3rem; }
  th, td { padding: .3rem .35rem; } td.k { white-space: normal; }
  td.k + td { overflow-wrap: anywhere; } }
@media print { @page { margin: 16mm 14mm; } body { max-width: none; padding: 0; font-size: 10.5pt; }
  .scroll { overflow: visible; } pre { max-height: none; } a { color: inherit; }
  body > h2:first-of-type { break-before: page; margin-top: 0; } .banner { break-after: avoid; }
  table, figure, svg { break-inside: avoid; } details { display: none; }
  table { font-size: 9pt; } pre, code { font-size: 7.5pt; } .cards { gap: .5rem; margin: .5rem 0; }
  .card, .banner, rect, .key i { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
