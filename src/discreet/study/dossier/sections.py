"""The sections of a dossier, in the order in which a reviewer asks."""

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from discreet._plain import JsonObject
from discreet.privacy.guarantee import (
    REHEARSED,
    Guarantee,
    Rehearsal,
    rounded_down,
    rounded_up,
)
from discreet.study import ledger
from discreet.study.dossier import words
from discreet.study.dossier.evidence import Proof, noise_lines
from discreet.study.dossier.heat_map import MOST_STATES, MOST_STEPS, heat_map, legend
from discreet.study.policy_file import rows_of

if TYPE_CHECKING:
    from discreet.study.dossier.page import Material
    from discreet.study.study import Study

_FIRST, _LAST = 20, 20
"""Entries of a long ledger that are shown."""
_MOST_ROWS = 2_000
_NONE = '<p class="fails">There is no certificate: no batch was counted.</p>'
_WIDEST = 12
"""Steps of a policy that stand side by side."""


def in_one_minute(material: "Material") -> str:
    """Who is trusted, what is promised, what is not: three cards."""
    guarantee = material.study.guarantee
    notion = words.NOTIONS[guarantee.notion]
    numbers = words.in_numbers(guarantee)
    not_protected = [words.NEVER[0], *notion.unprotected[:2]]
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
    notion = words.NOTIONS[guarantee.notion]
    return (
        f"<h3>To everybody who takes part</h3><p>{escape(notion.patient)}</p>"
        f"{_list(words.in_numbers(guarantee))}"
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
    parties = words.NOTIONS[material.study.guarantee.notion].parties
    if material.study.key_file is not None:
        parties = (*parties[:-1], words.SEALED, parties[-1])
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
    own = words.NOTIONS[material.study.guarantee.notion].unprotected
    return _list([*own, *words.NEVER])


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
