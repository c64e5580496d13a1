"""The dossier as one self-contained HTML page: on a desk, on a phone, on paper.

`gather` verifies the file, certifies and audits its noise, which takes time; `render` fills the
template `dossier.html`, in which every value is escaped.
"""

import base64
import datetime
import hashlib
import math
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import _validate
from discreet._files import check_output, write_text
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError, MissingExtraError, StudyError
from discreet.privacy.guarantee import REHEARSED, Guarantee, odds, rounded_down, rounded_up
from discreet.study.config import trust_of
from discreet.study.dossier.evidence import Examined, Progress, Proof, examined, noise_lines, proofs
from discreet.study.dossier.registry import rows
from discreet.study.estimate import Answer
from discreet.study.files import rows_of
from discreet.study.ledger import software

if TYPE_CHECKING:
    from discreet.study.study import Study

# Okabe and Ito's colours, which people of all kinds of sight tell apart, and on paper too.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00", "#999999")
_SQUARE, _LEFT, _TOP = 34, 150, 26
_MOST_STATES, _MOST_STEPS = 60, 40
_FIRST, _LAST = 20, 20
"""Entries of a long ledger that are shown."""
_MOST_ROWS = 2_000
_WIDEST = 12
"""Steps of a policy that stand side by side."""


@dataclass(frozen=True)
class Material:
    """All that a page is made of.

    Attributes:
        study: only read.
        entries: its ledger.
        proofs: certificates.
        audit: None where nothing is guaranteed.
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
        environment()
        write_text(where, render(gather(study, progress)))
    except InvalidInputError as error:
        raise StudyError(str(error)) from None
    return where


def gather(study: "Study", progress: Progress = lambda _: None) -> Material:
    """Everything a page needs; this is what takes time."""
    progress("the file")
    study.verify()
    entries = study.ledger
    sizes = _sizes(entries)
    if not sizes and not study.finished:
        sizes = [study.batch_size]
    mechanism, trust = study.mechanism, trust_of(study.config)
    return Material(
        study,
        [dict(entry) for entry in entries],
        proofs(mechanism, sizes, lambda text: progress(f"a certificate: {text}")),
        None if mechanism.guarantee.notion == "none" else examined(mechanism, trust.name, progress),
        datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        digest_of_sources(),
    )


def render(material: Material) -> str:
    """The page as text."""
    study, entries, made = material.study, material.entries, material.proofs
    answer, names, config = study.answer, study.names, study.config
    sizes = _sizes(entries)
    proven = {proof.users for proof in made}
    notes = [note for entry in entries if isinstance(note := entry.get("note"), dict)]
    audited = [] if material.audit is None else material.audit.rows
    history = _history(entries, study.head)
    if len(history) > _FIRST + _LAST:
        history = history[:_FIRST] + history[-_LAST:]
    page: str = (
        environment()
        .get_template("dossier.html")
        .render(
            REHEARSED=REHEARSED,
            study=study,
            made=material.made,
            software=software(),
            inf=math.inf,
            numbers=in_numbers(study.guarantee),
            registered=rows(study),
            proofs=made,
            proven=bool(made) and all(proof.text for proof in made),
            uncertified=len(set(sizes) - proven) if proven and None not in proven else 0,
            audit=material.audit,
            paths=[
                (
                    row.path,
                    row.kind,
                    f"{rounded_up(row.epsilon)}, {rounded_up(row.delta, 3)}",
                    rounded_up(row.exact_epsilon * (1 - 1e-12), 7),
                    "yes" if row.holds else "NO",
                )
                for row in audited
            ],
            noise=list(noise_lines(study.mechanism, sizes)),
            extended="; ".join(
                f"to {entry['episodes']:,} participations when {entry['total']:,} were counted, "
                f"and what they had shown could be read"
                for entry in entries
                if entry["kind"] == "extend"
            ),
            handed_over=Counter(str(n["reports"]) for n in notes if "reports" in n).items(),
            config=config,
            names=names,
            starts=[names.states[i] for i in config["start_states"]],
            answer=answer,
            picture=picture(answer, names),
            policy=_policy(answer, names),
            entries=len(entries),
            history=history,
            hashes=_hashes(material),
            commands=commands(material),
        )
    )
    return page


def in_numbers(guarantee: Guarantee) -> tuple[str, ...]:
    """What epsilon and delta mean, in a few sentences; all numbers rounded up.

    A guess between two records, both as likely as not beforehand, is right with probability at
    most (e^epsilon + delta)/(e^epsilon + 1): its two errors obey p + e^epsilon·q >= 1 - delta, and
    the same with p and q exchanged (Kairouz, Oh and Viswanath 2015).

    Odds: let somebody conclude A from what is seen. P(A | yours) <= e^epsilon·P(A | another) +
    delta, so odds of 1 to 9 become at most (e^epsilon + delta/P(A | another)) to 9, and
    P(A | another) >= 1/1000 is said. A risk is P(A | another) = 1/100.
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
        _odds(factor, guarantee.delta),
        f"If what is published would harm 1 in 100 people with other records in your place, it "
        f"harms at most {rounded_up(min(100.0, factor + 100 * guarantee.delta), 3)} in 100 with "
        f"yours.",
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


def _odds(factor: float, delta: float) -> str:
    """What odds of 1 to 9 become at most."""
    raised = factor + 1000 * delta
    percent = 100.0 if raised == math.inf else 100 * raised / (raised + 9)
    usual = ", if they would conclude it from 1 in 1,000 other records, too" if delta else ""
    return (
        f"Somebody who gives odds of 1 to 9 (10%) on a secret of yours gives at most "
        f"{rounded_up(raised, 3)} to 9 ({rounded_up(percent, 3)}%) after seeing everything{usual}."
    )


def picture(answer: Answer, names: Vocabulary) -> dict[str, Any]:
    """A policy as squares, one per step and state, whose colour is the action."""
    states, steps = names.states[:_MOST_STATES], names.steps[:_MOST_STEPS]
    squares = [
        {
            "x": _LEFT + _SQUARE * h,
            "y": _TOP + _SQUARE * s,
            "action": (action := int(answer.policy.actions[h, s])),
            "defer": bool(answer.defer[h, s]),
            "title": f"{step}, {state}: {names.actions[action]}",
        }
        for s, state in enumerate(states)
        for h, step in enumerate(steps)
    ]
    return {
        "width": _LEFT + _SQUARE * len(steps) + 10,
        "height": _TOP + _SQUARE * len(states) + 8,
        "steps": [(_LEFT + _SQUARE * h, step) for h, step in enumerate(steps)],
        "states": [(_TOP + _SQUARE * s, state) for s, state in enumerate(states)],
        "squares": squares,
        "cut": len(squares) < len(names.states) * len(names.steps),
    }


def _policy(answer: Answer, names: Vocabulary) -> dict[str, Any]:
    """States by steps where that fits on paper, one row for each otherwise."""
    rows = rows_of(answer, names)
    evidence = zip(answer.difference.ravel(), answer.standard_error.ravel(), strict=True)
    said = [
        f"({row['action']})" if row["defer"] else f"{row['action']} {_with_error(*found)}"
        for row, found in zip(rows, evidence, strict=True)
    ]
    if len(names.steps) <= _WIDEST:
        size = len(names.states)
        wide = [(state, *said[s::size]) for s, state in enumerate(names.states[:_MOST_ROWS])]
        return {"head": ("state", *names.steps), "rows": wide, "size": size}
    listed = zip(rows[:_MOST_ROWS], said, strict=False)
    long = [(row["step"], row["state"], text) for row, text in listed]
    return {"head": ("step", "state", "action"), "rows": long, "size": len(rows)}


def _with_error(value: float, error: float) -> str:
    """A difference and its standard error, both to the error's second digit.

    >>> _with_error(33.41, 16.52), _with_error(0.0216, 0.0071)
    ('+33 ± 17', '+0.0216 ± 0.0071')
    """
    digits = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 3
    return f"{value:+,.{digits}f} ± {error:,.{digits}f}"


def _history(entries: Sequence[dict[str, object]], head: str) -> list[tuple[object, ...]]:
    """The ledger, entry by entry with its hash."""
    digests = [str(entry["previous"]) for entry in entries[1:]] + [head]
    return [
        (
            *(entry.get(name, "") for name in ("number", "kind", "users", "asked")),
            str(entry.get("policy", ""))[:16],
            digest[:16],
        )
        for entry, digest in zip(entries, digests, strict=True)
    ]


def _hashes(material: Material) -> list[tuple[str, object]]:
    study = material.study
    return [
        ("ledger head", study.head),
        ("configuration (the study's identity)", material.entries[0]["config"]),
        ("policy of section 7", hashlib.blake2b(study.policy.key, digest_size=16).hexdigest()),
        *(("certificate", proof.digest) for proof in material.proofs if proof.digest),
        *(
            ("software of the study's entries", text)
            for text in sorted({_plain(entry["software"]) for entry in material.entries})
        ),
        ("software of this page", _plain(software())),
        ("its source files, SHA-256", material.sources),
    ]


def certificates(material: Material) -> dict[str, str]:
    """Name of a file -> certificate."""
    texts = [proof.text for proof in material.proofs]
    return {f"certificate-{number}.json": text for number, text in enumerate(texts) if text}


def commands(material: Material) -> list[tuple[str, str, str]]:
    """Every claim of the page, what checking it needs, and the command."""
    study, audit = material.study, material.audit
    file, one = shlex.quote(study.path.name), study.mechanism.guarantee
    bundle = "the bundle and Python"
    both, at_operator = "the bundle and discreet", "the study's file and discreet"
    proofs = list(certificates(material))
    return [
        ("counts, design, guarantee, certificates, policy, history, hashes (1, 4, 5, 7, 8, 9)",
         bundle, f"python -I review.py --head {study.head}"),
        *((f"the noise is enough ({name})", bundle, f"python -I verify.py {name}")
          for name in proofs),
        *(("the same, and what was proven", both, f"discreet certify --verify {name}")
          for name in proofs[:1]),
        *([] if audit is None else [
            ("the audit (6)", "discreet",
             f"discreet audit {audit.name} --epsilon {one.epsilon!r} --delta {one.delta!r}")]),
        ("the file is whole, and no older copy", at_operator,
         f"discreet study verify {file} --head {study.head}"),
        *(("the certificate is of this study's noise", at_operator,
           f"discreet certify --verify {name} --for {file}") for name in proofs[:1]),
        ("the policy (7)", at_operator, f"discreet study policy {file} --json"),
        ("this page, and the bundle", at_operator,
         f"discreet study bundle {file} --output review.zip"),
    ]  # fmt: skip


def digest_of_sources() -> str:
    """One SHA-256 over all Python files and templates of this library, by their names."""
    root = Path(__file__).parents[2]
    total = hashlib.sha256()
    for file in sorted(root.rglob("*.*")):
        if file.suffix in (".py", ".html", ".css"):
            total.update(f"{file.relative_to(root).as_posix()}\0".encode())
            total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def environment() -> Any:
    """Jinja's, with the filters of the templates; refuses if it is not installed."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("jinja2", "certify") from None
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # names of states, actions and files are anybody's
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(
        up=rounded_up,
        down=rounded_down,
        plain=_plain,
        listed=_listed,
        colour=lambda action: _COLOURS[action % len(_COLOURS)],
        base64=lambda text: base64.b64encode(f"{text}\n".encode()).decode(),
    )
    return made


def _sizes(entries: Sequence[Any]) -> list[int]:
    return [int(str(entry["users"])) for entry in entries if entry["kind"] == "batch"]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:60])
    return shown if len(names) <= 60 else f"{shown}, … ({len(names):,} in all)"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        parts = [f"{name} {_plain(part)}" for name, part in value.items() if part is not None]
        return ", ".join(parts) or "as usual"
    return str(value)
