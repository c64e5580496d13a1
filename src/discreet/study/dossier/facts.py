"""What a bundle says that no other file of it does: the operator's word, made now.

`gather` verifies the study's file, and certifies and audits its noise, which takes time.
"""

import datetime
import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

from discreet._types import Plain
from discreet.privacy.guarantee import rounded_down, rounded_noise, rounded_up
from discreet.study.dossier.evidence import Examined, Progress, Proof, examined, proofs
from discreet.study.ledger import software

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.study.study import Study


def gather(study: "Study", progress: Progress) -> tuple[list[Proof], Examined | None]:
    """Certificates and audit of a file that was verified; no audit where nothing is guaranteed."""
    progress("the file")
    study.verify()
    mechanism = study.mechanism
    made = proofs(mechanism, _sizes(study), lambda text: progress(f"a certificate: {text}"))
    if mechanism.guarantee.notion == "none":
        return made, None
    return made, examined(mechanism, mechanism.spec.trust, progress)


def facts_of(study: "Study", proofs: list[Proof], audit: Examined | None) -> dict[str, Plain]:
    """The content of ``facts.json``."""
    answer, mechanism = study.answer, study.mechanism
    missing: list[Plain] = [_missing(proof) for proof in proofs if not proof.text]
    return {
        "name": study.path.name,
        "made": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "software": dict(software()),
        "sources": digest_of_sources(),
        "ending": study.ending,
        "assumptions": list(study.guarantee.assumptions),
        "settings": study.settings,
        "mechanism": mechanism.name,
        "statistics": ", ".join(mechanism.statistics),
        "noise": _noise(study),
        "missing": missing if proofs else ["There is no certificate: no batch was counted."],
        "audit": None if audit is None else _audit(audit, mechanism.guarantee),
        "expected": study.expected.sentence,
        "today": answer.today._asdict(),
        "notes": list(study.notes),
    }


def _sizes(study: "Study") -> list[int]:
    """Of the batches that were counted, or of the one that is pending."""
    sizes = [int(str(entry["users"])) for entry in study.ledger if entry["kind"] == "batch"]
    return sizes or ([] if study.finished else [study.batch_size])


def _noise(study: "Study") -> list[Plain]:
    """What one counter of each statistic has, in the largest batch."""
    users = max(_sizes(study), default=1_000)
    return [
        [f"noise on a counter of {name}",
         f"{rounded_noise(math.sqrt(variance))} users (standard deviation, {users:,} took part)"]
        for name, variance in study.mechanism.noise_variance(users).items()
    ]  # fmt: skip


def _missing(proof: Proof) -> str:
    return (
        proof.sentence if proof.users is None else f"A batch of {proof.users:,}: {proof.sentence}"
    )


def _audit(found: Examined, one: "Guarantee") -> dict[str, Plain]:
    """All numbers as text: what the release costs rounded up, what an attack proves down."""
    exact = f"not computed: {found.unlisted}"
    if found.exact is not None:
        exact = f"ε = {rounded_up(found.exact * (1 - 1e-12), 7)} at δ = {rounded_up(one.delta)}"
    proves = f"proves ε ≥ {rounded_down(found.attacked, 3)}" if found.attacked else "found nothing"
    reach, blatant = found.reach(one.epsilon), found.reach(math.inf)
    return {
        "holds": found.holds(one.epsilon),
        "exact": exact,
        "attack": f"{proves}; of the most telling release that this guarantee allows it would "
        f"prove about ε ≥ {rounded_down(reach, 2)}, and of one that hides nothing ε ≥ "
        f"{rounded_down(blatant, 2)} ({found.runs} releases of each of two opposite participants, "
        f"confidence 1 - 1e-6)",
        "problems": list(found.problems),
        "name": found.name,
        "command": f"discreet audit {found.name} --epsilon {one.epsilon!r} --delta {one.delta!r}",
        "paths": [
            [
                row.path,
                row.kind,
                f"{rounded_up(row.epsilon)}, {rounded_up(row.delta, 3)}",
                rounded_up(row.exact_epsilon * (1 - 1e-12), 7),
                "yes" if row.holds else "NO",
            ]
            for row in found.rows
        ],
    }


def digest_of_sources(root: Path = Path(__file__).parents[2]) -> str:
    """One SHA-256 over all files of this library but compiled ones, by their names."""
    total = hashlib.sha256()
    for file in sorted(root.rglob("*.*")):
        if file.suffix in (".py", ".html", ".css", ".js"):
            total.update(f"{file.relative_to(root).as_posix()}\0".encode())
            total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()
