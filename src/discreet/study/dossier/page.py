"""The dossier as one self-contained HTML page: on a desk, on a phone, on paper."""

import datetime
import hashlib
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from discreet._outputs import check_output, write_text
from discreet.errors import InvalidInputError, StudyError
from discreet.privacy.guarantee import REHEARSED, Rehearsal
from discreet.privacy.plans import BatchPlan
from discreet.study.config import trust_of
from discreet.study.dossier import sections
from discreet.study.dossier.evidence import Examined, Progress, Proof, examined, proofs
from discreet.study.ledger import software

if TYPE_CHECKING:
    from discreet.study.study import Study

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
    batches = sizes if isinstance(plan, BatchPlan) else []
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
    parts = [f"<h1>{escape(title)}</h1>", lead, banner, sections.in_one_minute(material)]
    for name, make in SECTIONS.items():
        parts.append(f"<h2>{escape(name)}</h2>{banner if name in _AGAIN else ''}{make(material)}")
    return head + "\n".join(part for part in parts if part) + "</body></html>\n"


SECTIONS: dict[str, Callable[[Material], str]] = {
    "1. What is promised, and to whom": sections.promise,
    "2. Who is trusted with what": sections.trusted,
    "3. What is not protected": sections.unprotected,
    "4. Parameters": sections.parameters,
    "5. The noise, and the proof that it is enough": sections.noise,
    "6. Audit of this mechanism at this shape, run now": sections.audit,
    "7. What was learnt: the policy": sections.policy,
    "8. Batch by batch": sections.history,
    "9. Versions and hashes": sections.hashes,
    "10. How to check every line yourself": sections.checking,
    "11. Signature": sections.signature,
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
