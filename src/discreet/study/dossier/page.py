"""A policy as a picture: one square per step and state, its colour the action; inline SVG."""

import base64
import datetime
import hashlib
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from discreet import _validate
from discreet._files import check_output, write_text
from discreet._types import JsonObject
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError, StudyError
from discreet.privacy.guarantee import (
    REHEARSED,
    Guarantee,
    Rehearsal,
    odds,
    rounded_down,
    rounded_up,
)
from discreet.privacy.plans import BatchMechanism
from discreet.study import ledger
from discreet.study.config import trust_of
from discreet.study.dossier.evidence import Examined, Progress, Proof, examined, noise_lines, proofs
from discreet.study.files import rows_of
from discreet.study.knowledge import Answer
from discreet.study.ledger import software

if TYPE_CHECKING:
    from discreet.study.study import Study


# Okabe and Ito's colours, which people of all kinds of sight tell apart, and on paper too.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00", "#999999")
_SQUARE, _LEFT, _TOP, _LETTER = 34, 150, 26, 7
MOST_STATES, MOST_STEPS = 60, 40


def colour(action: int) -> str:
    """Of an action; they come again after eight."""
    return _COLOURS[action % len(_COLOURS)]


def heat_map(answer: Answer, names: Vocabulary) -> str:
    """The picture: rows are states, columns are steps; pale where nothing is known."""
    states, steps = names.states[:MOST_STATES], names.steps[:MOST_STEPS]
    width = _LEFT + _SQUARE * len(steps) + 10
    height = _TOP + _SQUARE * len(states) + 8
    parts = [_text(_LEFT + _SQUARE * h + _SQUARE / 2, 18, _short(s, 4), "middle", s)
             for h, s in enumerate(steps)]  # fmt: skip
    for s, state in enumerate(states):
        y = _TOP + _SQUARE * s
        parts.append(_text(_LEFT - 8, y + _SQUARE / 2 + 4, _short(state, 19), "end", state))
        parts += [_square(answer, names, h, s) for h in range(len(steps))]
    label = "The policy: steps from left to right, states from top to bottom, colour is the action"
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{label}" '
        f'font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def legend(names: Vocabulary) -> str:
    """Which colour is which action."""
    keys = "".join(
        f'<span class="key"><i style="background:{colour(a)}"></i>{a + 1} {escape(name)}</span>'
        for a, name in enumerate(names.actions)
    )
    pale = '<span class="key"><i class="pale"></i>pale, in brackets: rests on no data</span>'
    return f'<p class="legend">{keys}{pale}</p>'


def _square(answer: Answer, names: Vocabulary, h: int, s: int) -> str:
    """The number of the action stands in it, for printers without colours."""
    action, known = int(answer.policy.actions[h, s]), bool(answer.known[h, s])
    x, y = _LEFT + _SQUARE * h, _TOP + _SQUARE * s
    number = str(action + 1) if known else f"({action + 1})"
    title = f"{names.steps[h]}, {names.states[s]}: {names.actions[action]}"
    said = title if known else f"{title} (rests on no data)"
    opacity = 1 if known else 0.25
    return (
        f'<g><title>{escape(said)}</title><rect x="{x}" y="{y}" width="{_SQUARE - 2}" '
        f'height="{_SQUARE - 2}" rx="3" fill="{colour(action)}" fill-opacity="{opacity}"/>'
        f"{_text(x + _SQUARE / 2 - 1, y + _SQUARE / 2 + 3, number, 'middle')}</g>"
    )


def _text(x: float, y: float, text: str, anchor: str, title: str = "") -> str:
    tip = f"<title>{escape(title)}</title>" if title else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{tip}{escape(text)}</text>'


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# What a study promises, who is trusted with what, what is not protected: in words for people.


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


# The sections of a dossier, in the order in which a reviewer asks.


_FIRST, _LAST = 20, 20
"""Entries of a long ledger that are shown."""
_MOST_ROWS = 2_000
_NONE = '<p class="fails">There is no certificate: no batch was counted.</p>'
_WIDEST = 12
"""Steps of a policy that stand side by side."""


def in_one_minute(material: "Material") -> str:
    """Who is trusted, what is promised, what is not: three cards."""
    guarantee = material.study.guarantee
    notion = NOTIONS[guarantee.notion]
    numbers = in_numbers(guarantee)
    not_protected = [NEVER[0], *notion.unprotected[:2]]
    return (
        '<div class="three">'
        f'<div class="card"><h2>Who is trusted</h2><p class="big">{escape(notion.trusted)}</p>'
        f"{_list(guarantee.assumptions[:2])}</div>"
        f'<div class="card yes"><h2>What is promised</h2><p class="big">{_pair(guarantee)}</p>'
        f"<p>{escape(notion.patient)}</p><p>{escape(numbers[-1 if len(numbers) == 1 else 1])}</p>"
        f'</div><div class="card not"><h2>What is not protected</h2>{_list(not_protected)}</div>'
        f"</div>{_state(material)}"
    )


def _state(material: "Material") -> str:
    """Where the study and its evidence stand, in one line each."""
    study, audit = material.study, material.audit
    facts = [
        ("Participants", f"{study.users:,} of {study.episodes:,}, in {study.batches:,} "
         f"{'batch' if study.batches == 1 else 'batches'}; the study "
         f"{'has ended' if study.finished else 'goes on'}"),
        ("The file", "verified just now: whole, and nobody counted twice"),
        ("The noise", "certified" if _proven(material) else "not certified: see section 5"),
        ("The audit", "nothing promised, nothing to audit" if audit is None else
         "agrees with the promise" if audit.holds(study.plan.guarantee.epsilon) else
         "DOES NOT AGREE with the promise: see section 6"),
    ]  # fmt: skip
    return _facts(material, facts)


def _proven(material: "Material") -> bool:
    """Whether there is a certificate, and none is missing."""
    return bool(material.proofs) and all(proof.text for proof in material.proofs)


def promise(material: "Material") -> str:
    """In words a patient understands, in numbers, in mathematics."""
    guarantee = material.study.guarantee
    notion = NOTIONS[guarantee.notion]
    return (
        f"<h3>To everybody who takes part</h3><p>{escape(notion.patient)}</p>"
        f"{_list(in_numbers(guarantee))}"
        f"<h3>In mathematics: {escape(notion.name)}</h3>"
        f'<p class="math">{notion.formula}<br><b>{_pair(guarantee)}</b>; unit: '
        f"{escape(guarantee.unit)}; neighbours: {escape(guarantee.neighbours)}.</p>"
        f"<h3>It holds if</h3>{_list(guarantee.assumptions)}{_releases(material)}"
    )


def _releases(material: "Material") -> str:
    one, all_ = material.study.plan.guarantee, material.study.guarantee
    if one.epsilon == all_.epsilon:
        return ""
    return (
        f"<p>One release has {_pair(one)}; a participant may be in more than one, and all are "
        f"charged: {_pair(all_)} together.</p>"
    )


def trusted(material: "Material") -> str:
    """Party, sight, trust."""
    parties = NOTIONS[material.study.guarantee.notion].parties
    if material.study.key_file is not None:
        parties = (*parties[:-1], SEALED, parties[-1])
    return _table(material, ("who", "sees", "is trusted"), parties) + _handed_over(material)


def _handed_over(material: "Material") -> str:
    """What the ledger says of how reports came, besides."""
    notes = [note for e in material.entries if isinstance(note := e.get("note"), dict)]
    said = Counter(str(note["reports"]) for note in notes if "reports" in note)
    return "".join(
        f'<p class="fails">{times:,} of {material.study.batches:,} batches: {escape(text)}.</p>'
        for text, times in said.items()
    )


def unprotected(material: "Material") -> str:
    """What nobody should think is promised."""
    own = NOTIONS[material.study.guarantee.notion].unprotected
    return _list([*own, *NEVER])


def parameters(material: "Material") -> str:
    """What the study was told before anybody was asked."""
    config, names = material.study.config, material.study.names
    problem = material.study.problem
    starts = [names.states[i] for i in config["start_states"]]
    trust = ", ".join(f"{name} {value}" for name, value in config["trust"].items())
    facts = [
        ("learner", str(config["learner"])),
        ("trust model", trust),
        ("participants in all", f"{config['episodes']:,}"),
        (f"states ({len(names.states)})", _named(names.states)),
        (f"actions ({len(names.actions)})", _named(names.actions)),
        (f"steps ({len(names.steps)})", _named(names.steps)),
        ("episodes begin in", "any state" if problem.start.all() else _named(starts)),
        ("dynamics", "said not to depend on the step" if config["stationary"] else "by step"),
        ("randomness", "of the operating system" if config["sampler"] == "secure" else REHEARSED),
        ("learner's settings", _plain(config["settings"])),
        ("how tables are read", _plain(config.get("table", {}))),
    ]
    return _facts(material, facts)


def noise(material: "Material") -> str:
    """The law in exact numbers, and its certificates with their files."""
    study = material.study
    sizes = [int(str(e["users"])) for e in material.entries if e["kind"] == "batch"]
    lines = noise_lines(study.plan, sizes)
    return (
        _facts(material, list(lines))
        + "<h3>Certificate</h3><p>A rigorous bound on δ(ε) of this noise, by ball arithmetic, "
        "checked again with integers by a program that imports nothing of this library.</p>"
        + ("".join(_certificate(proof, i) for i, proof in enumerate(material.proofs)) or _NONE)
        + _uncertified(material, sizes)
    )


def _uncertified(material: "Material", sizes: Sequence[int]) -> str:
    """Sizes of batches whose noise depends on them and has no certificate here."""
    proven = {proof.users for proof in material.proofs}
    left = len(set(sizes) - proven)
    if None in proven or not left or not proven:
        return ""
    return (
        f'<p class="fails">{left:,} smaller sizes of batches have no certificate on this page; '
        f"<code>discreet certify</code> makes one for each.</p>"
    )


def _certificate(proof: Proof, number: int) -> str:
    whose = "" if proof.users is None else f"A batch of {proof.users:,}: "
    kind = "holds" if proof.text else "fails"
    said = f'<p class="{kind}">{escape(whose + proof.sentence)}</p>'
    if not proof.text:
        return said
    name = f"certificate-{number}.json"
    data = base64.b64encode((proof.text + "\n").encode()).decode()
    return (
        f'{said}<p>Digest <code>{escape(proof.digest)}</code>. <a download="{name}" '
        f'href="data:application/json;base64,{data}">Save {name}</a>, then '
        f"<code>discreet certify --verify {name}</code>, which says what was proven.</p>"
        f"<details><summary>The file</summary><pre>{escape(proof.text)}</pre></details>"
    )


def audit(material: "Material") -> str:
    """Exact, by attack, and every path of the mechanism."""
    found, guarantee = material.audit, material.study.plan.guarantee
    if found is None:
        return "<p>Nothing is promised: there is nothing to audit.</p>"
    good = found.holds(guarantee.epsilon)
    covered = "the certificate covers this shape" if _proven(material) else "nor certified"
    exact = (
        f"not computed: {found.unlisted}; {covered}"
        if found.exact is None
        else f"ε = {rounded_up(found.exact * (1 - 1e-12), 7)} at δ = {rounded_up(guarantee.delta)}"
    )
    facts = [
        ("promised by one release", str(guarantee)),
        ("delivered by the real code at this shape", exact),
        ("attack at this shape", f"proves ε ≥ {rounded_down(found.attacked, 3)} ("
         f"{found.runs} releases of each of two opposite participants, confidence 1 - 1e-6)"),
        *(("problem", text) for text in found.problems),
    ]  # fmt: skip
    rows = [
        (row.path, row.kind, f"{rounded_up(row.epsilon)}, {rounded_up(row.delta, 3)}",
         rounded_up(row.exact_epsilon * (1 - 1e-12), 7), "yes" if row.holds else "NO")
        for row in found.rows
    ]  # fmt: skip
    verdict = "Nothing contradicts the promise." if good else "THE PROMISE IS CONTRADICTED."
    return (
        f'<p class="{"holds" if good else "fails"}">{verdict}</p>{_facts(material, facts)}'
        f"<h3>Every path of {escape(found.name)}, on a small problem with the same ε and δ</h3>"
        + _table(material, ("path", "kind", "promised ε, δ", "exact ε", "holds"), rows)
        + '<p class="small">An attack can convict, never acquit; the certificate is the proof.</p>'
    )


def policy(material: "Material") -> str:
    """Value, picture, table."""
    study = material.study
    answer, names = study.answer, study.names
    shape = names.shape
    cut = "" if shape.states <= MOST_STATES and shape.horizon <= MOST_STEPS else (
        f"<p>The picture shows the first {MOST_STATES} states and {MOST_STEPS} steps.</p>"
    )  # fmt: skip
    return (
        f"<p>Worth {escape(str(answer.value))} per episode, of at most {shape.horizon}: an "
        "estimate from the releases alone, with an interval by normal approximation. Reading it "
        f"costs no privacy.</p>{legend(names)}{heat_map(answer, names)}{cut}"
        f"<h3>As a table</h3>{_policy_table(material, rows_of(answer, names))}"
    )


def _policy_table(material: "Material", rows: Sequence[JsonObject]) -> str:
    """States by steps where that fits on paper, one row for each otherwise."""
    names = material.study.names
    note = '<p class="small">In brackets: rests on no data.</p>'
    said = [str(r["action"]) if r["known"] else f"({r['action']})" for r in rows]
    if len(names.steps) <= _WIDEST:
        size = len(names.states)
        body = [(state, *said[s::size]) for s, state in enumerate(names.states[:_MOST_ROWS])]
        return _table(material, ("state", *names.steps), body) + note + _cut(size)
    listed = zip(rows[:_MOST_ROWS], said, strict=False)
    body = [(str(row["step"]), str(row["state"]), text) for row, text in listed]
    return _table(material, ("step", "state", "action"), body) + note + _cut(len(rows))


def _cut(rows: int) -> str:
    """That a table has more rows than are shown."""
    return "" if rows <= _MOST_ROWS else f"<p>The first {_MOST_ROWS:,} of {rows:,}.</p>"


def history(material: "Material") -> str:
    """The ledger, entry by entry with its hash."""
    entries = material.entries
    hashes = [str(e["previous"]) for e in entries[1:]] + [material.study.head]
    rows = [
        (str(e["number"]), str(e["kind"]), str(e.get("users", "")), str(e.get("asked", "")),
         _code(str(e.get("policy", ""))[:16]), _code(digest[:16]))
        for e, digest in zip(entries, hashes, strict=True)
    ]  # fmt: skip
    note = ""
    if len(rows) > _FIRST + _LAST:
        note = f"<p>{len(rows):,} entries; the first {_FIRST} and the last {_LAST} are shown.</p>"
        rows = rows[:_FIRST] + rows[-_LAST:]
    head = ("entry", "what", "came", "asked for", "policy", "hash")
    table = _table(material, head, rows, raw=(4, 5))
    return (
        "<p>Each entry quotes the hash of the one before it, and those of its participants, policy "
        f"and statistics. Hashes are cut to 16 digits here.</p>{note}{table}"
    )


def hashes(material: "Material") -> str:
    """Ledger head, configuration, policy, software."""
    study, first = material.study, material.entries[0]
    software = sorted({_plain(e["software"]) for e in material.entries})
    key = hashlib.blake2b(study.policy.key, digest_size=16).hexdigest()
    facts = [
        ("ledger head", study.head),
        ("configuration (the study's identity)", str(first["config"])),
        ("policy of section 7", key),
        *(("certificate", proof.digest) for proof in material.proofs if proof.digest),
        *(("software of the study's entries", text) for text in software),
        ("software of this page", _plain(ledger.software())),
        ("its source files, SHA-256", material.sources),
    ]
    return _facts(material, facts, code=True)


def checking(material: "Material") -> str:
    """A command for every claim."""
    study, guarantee = material.study, material.study.plan.guarantee
    file = shlex.quote(study.path.name)
    name = "" if material.audit is None else material.audit.name
    pair = f"--epsilon {guarantee.epsilon!r} --delta {guarantee.delta!r}"
    alone = "python discreet/privacy/certificates/verify.py certificate-0.json"
    rows = [
        ("the file is whole, and no older copy", f"study verify {file} --head {study.head}"),
        ("parameters, promise, batches (1, 4, 8)", f"study show {file} --json"),
        ("the noise is enough (5)", f"certify --verify certificate-0.json --for {file}"),
        ("the audit (6)", f"audit {name} {pair}"),
        ("the promise is kept on the disk and across restarts", f"check study {file}"),
        ("the policy (7)", f"study policy {file} --json"),
        ("this page", f"study report {file}"),
    ]
    commands = [(what, f"discreet {command}") for what, command in rows]
    commands.insert(3, ("the same, by the standard library alone", alone))
    cells = [(what, f"<code>{escape(command)}</code>") for what, command in commands]
    return _table(material, ("claim", "command"), cells, raw=(1,)) + (
        '<p class="small">The proof that one participant moves the statistics no further than '
        "section 5 says is in <code>discreet.privacy.sensitivity</code>, and in short in "
        "<code>verify.py</code>. What people do (keeping raw data, knowing two names for one "
        "person) no command can see.</p>"
    )


def signature(material: "Material") -> str:
    """Lines to sign on, for one head."""
    fields = ("Name of the operator", "Place, date, signature", "Name of the reviewer",
              "Place, date, signature")  # fmt: skip
    return (
        f"<p>This page is about the state of the study with the head <code>"
        f"{escape(material.study.head)}</code>, and about no later one.</p>"
        f'<div class="sign">{"".join(f"<div>{field}</div>" for field in fields)}</div>'
    )


def _pair(guarantee: Guarantee) -> str:
    if guarantee.notion == "none":
        return "nothing"
    epsilon, delta = rounded_up(guarantee.epsilon), rounded_up(guarantee.delta, 3)
    return f"ε = {epsilon}, δ = {delta} ({guarantee.notion})"


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:60])
    return shown if len(names) <= 60 else f"{shown}, … ({len(names):,} in all)"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items()) or "as usual"
    return str(value)


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>" if text else ""


def _facts(material: "Material", facts: Sequence[tuple[str, str]], *, code: bool = False) -> str:
    mark = ("<code>", "</code>") if code else ("", "")
    rows = "".join(
        f'<tr><td class="k">{escape(name)}</td><td>{mark[0]}{escape(text)}{mark[1]}</td></tr>'
        for name, text in facts
    )
    return f'<div class="scroll"><table>{_caption(material.study)}{rows}</table></div>'


def _table(
    material: "Material",
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    raw: Sequence[int] = (),
) -> str:
    """A table; ``raw`` columns are HTML already. Each says whose noise protects nobody."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{c if i in raw else escape(c)}</td>" for i, c in enumerate(row))
        + "</tr>"
        for row in rows
    )
    caption = _caption(material.study)
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{top}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def _caption(study: "Study") -> str:
    rehearsed = isinstance(study.guarantee, Rehearsal)
    return f"<caption>{REHEARSED}</caption>" if rehearsed else ""


# The dossier as one self-contained HTML page: on a desk, on a phone, on paper.


_STYLE = """
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
.three { display: grid; grid-template-columns: repeat(3, 1fr); gap: .9rem; margin: 1rem 0; }
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
  .three, .sign { grid-template-columns: 1fr; } h1 { font-size: 1.3rem; }
  th, td { padding: .3rem .35rem; } td.k { white-space: normal; }
  td.k + td { overflow-wrap: anywhere; } }
@media print { @page { margin: 16mm 14mm; } body { max-width: none; padding: 0; font-size: 10.5pt; }
  .scroll { overflow: visible; } pre { max-height: none; } a { color: inherit; }
  body > h2:first-of-type { break-before: page; margin-top: 0; } .banner { break-after: avoid; }
  table, figure, svg { break-inside: avoid; } details { display: none; }
  table { font-size: 9pt; } pre, code { font-size: 7.5pt; } .three { gap: .5rem; }
  .card, .banner, rect, .key i { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


class Material(NamedTuple):
    """All that a page is made of.

    Attributes:
        study: only read.
        entries: its ledger.
        proofs: certificates.
        audit: None where nothing is promised.
        made: the moment, as text.
        sources: digest of the software that made the page.
    """

    study: "Study"
    entries: "list[dict[str, object]]"
    proofs: list[Proof]
    audit: Examined | None
    made: str
    sources: str


def write_dossier(study: "Study", path: str | Path, *, progress: Progress = lambda _: None) -> Path:
    """Write the dossier of a study: the file is verified, its noise certified and audited, now.

    Args:
        study: only read; a file that does not verify is refused.
        path: ends in .html.
        progress: called with what is under way; the audit can take a minute.

    Returns:
        The path.
    """
    where = Path(path)
    try:
        check_output(where, ".html", ".htm")  # known before the audit, which takes long
        write_text(where, render(gather(study, progress)))
    except InvalidInputError as error:
        raise StudyError(str(error)) from None
    return where


def gather(study: "Study", progress: Progress = lambda _: None) -> Material:
    """Everything a page needs; this is what takes time."""
    progress("the file")
    study.verify()
    entries = study.ledger
    sizes = [int(str(e["users"])) for e in entries if e["kind"] == "batch"]
    if not sizes and not study.finished:
        sizes = [study.batch_size]
    plan, trust = study.plan, trust_of(study.config)
    batches = sizes if isinstance(plan, BatchMechanism) else []
    promised = plan.guarantee.notion != "none"
    return Material(
        study,
        list[dict[str, object]](dict(e) for e in entries),
        proofs(plan, batches, _said("a certificate", progress)),
        examined(plan, trust.name, progress) if promised else None,
        datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        digest_of_sources(),
    )


def render(material: Material) -> str:
    """The page as text."""
    study = material.study
    title = f"Dossier of the study {study.path.name}"
    rehearsed = isinstance(study.guarantee, Rehearsal)
    banner = f'<div class="banner">{escape(_REHEARSAL)}</div>' if rehearsed else ""
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
    )
    lead = f'<p class="lead">Made {escape(material.made)} by discreet {software()["discreet"]}, '
    lead += f"from the file with the head <code>{escape(study.head)}</code></p>"
    parts = [f"<h1>{escape(title)}</h1>", lead, banner, in_one_minute(material)]
    for name, make in SECTIONS.items():
        parts.append(f"<h2>{escape(name)}</h2>{banner if name in _AGAIN else ''}{make(material)}")
    return head + "\n".join(part for part in parts if part) + "</body></html>\n"


SECTIONS: dict[str, Callable[[Material], str]] = {
    "1. What is promised, and to whom": promise,
    "2. Who is trusted with what": trusted,
    "3. What is not protected": unprotected,
    "4. Parameters": parameters,
    "5. The noise, and the proof that it is enough": noise,
    "6. Audit of this mechanism at this shape, run now": audit,
    "7. What was learnt: the policy": policy,
    "8. Batch by batch": history,
    "9. Versions and hashes": hashes,
    "10. How to check every line yourself": checking,
    "11. Signature": signature,
}
_AGAIN = ("1. What is promised, and to whom", "7. What was learnt: the policy", "11. Signature")
"""Sections that are copied or signed alone."""
_REHEARSAL = (
    f"{REHEARSED}. This is a rehearsal with seeded noise: whatever this page says is promised "
    f"would be promised by a study with secure noise. Do not sign it for real people."
)


def digest_of_sources() -> str:
    """One SHA-256 over all Python files of this library, in the order of their names."""
    root = Path(__file__).parents[2]
    total = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        total.update(f"{file.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def _said(what: str, progress: Progress) -> Progress:
    return lambda text: progress(f"{what}: {text}")
