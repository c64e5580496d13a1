"""A study as an entry of a public registry of deployments, transparency tier 3.

The fields are those of the OpenDP Deployments Registry (``opendp/deployments-registry-data``,
``schemas/deployments-schema.yaml``, July 2026; JSON is YAML, which it takes). Its notes say the
same by the layers of NIST SP 800-226: a guarantee rests on its algorithm, both on the deployment.
The first page of a dossier prints what the study knows of them, from here.
"""

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet._types import Plain
from discreet.errors import StudyError
from discreet.privacy.guarantee import REHEARSED
from discreet.study.ledger import software

if TYPE_CHECKING:
    from discreet.study.study import Study

OPEN = "TO BE FILLED IN: "
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
LABELS = {
    "variant_name": "Flavour",
    "privacy_unit": "Privacy unit",
    "privacy_unit_details": "Neighbours",
    "privacy_parameters_details": "Parameters",
    "model_name": "Deployment model",
    "model_name_details": "Trust",
    "release_type_details": "Releases",
    "data_source_type_details": "Data source",
    "access_type_details": "Access",
    "data_domain": "Data domain",
    "unprotected_quantities": "Unprotected",
    "post_processing": "Post-processing",
    "composition": "Composition",
    "preprocessing_and_hyperparameter_tuning": "Before the release",
    "mechanisms": "Implementation and security",
    "justification": "Rationale",
}
"""Field of an entry -> what the dossier calls it."""


@dataclass(frozen=True, kw_only=True)
class About:
    """What a study's file does not know; None: to be filled in.

    Attributes:
        name: of what is published.
        curators: who publishes it.
        use: what it is meant for.
        region: of the data, or whose laws apply.
        date: of the publication, YYYY-MM-DD; today if left out.
        sector: one of `SECTORS`.
        authors: of the entry.
    """

    name: str | None = None
    curators: tuple[str, ...] = ()
    use: str | None = None
    region: str | None = None
    date: str | None = None
    sector: str | None = None
    authors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.sector not in (None, *SECTORS):
            raise StudyError(
                f"Expected a sector among {', '.join(SECTORS)}, got {self.sector!r} (--sector)."
            )
        if self.date is not None:
            try:
                datetime.date.fromisoformat(self.date)
            except ValueError:
                raise StudyError(
                    f"Expected a date as 2026-11-18, got {self.date!r} (--date)."
                ) from None


def registry_entry(study: "Study", about: About | None = None) -> dict[str, Any]:
    """The entry, as plain values; a study without a guarantee has none."""
    if study.guarantee.notion == "none":
        raise StudyError(
            "This study guarantees nothing: a registry of private deployments has no entry for it."
        )
    about = about or About()
    name = about.name or study.path.stem
    if study.guarantee.simulated:
        name = f"{name} ({REHEARSED})"
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(study, about, name),
            **private_fields(study),
            "administrative": {
                "notes": _pyramid(study),
                "registry_authors": list(about.authors) or [f"{OPEN}who wrote this entry"],
            },
        },
    }


def open_fields(entry: Any, at: str = "") -> list[str]:
    """Where an entry is still to be filled in."""
    if isinstance(entry, str):
        return [at] if entry.startswith(OPEN) else []
    parts = dict(enumerate(entry)) if isinstance(entry, list) else entry
    if not isinstance(parts, dict):
        return []
    inner = (open_fields(value, f"{at}.{key}".strip(".")) for key, value in parts.items())
    return [found for each in inner for found in each]


def rows(study: "Study") -> list[tuple[str, Plain]]:
    """The fields of a study's own, as the dossier prints them."""
    if study.guarantee.notion == "none":
        return []
    fields = {name: text for part in private_fields(study).values() for name, text in part.items()}
    return [(label, fields[name]) for name, label in LABELS.items()]


def _basic(study: "Study", about: About, name: str) -> dict[str, Plain]:
    names = study.names
    made: dict[str, Plain] = {
        "name": name,
        "data_curators": list(about.curators) or [f"{OPEN}who publishes it"],
        "description": f"A policy: which of {len(names.actions)} actions to take in "
        f"{len(names.states)} states at {len(names.steps)} steps, learnt by "
        f"{study.config['learner']} from {study.users:,} participations.",
        "intended_use": about.use or f"{OPEN}what it is meant for",
        "data_product_type": "Machine learning model",
        "data_product_region": about.region or f"{OPEN}whose data, or whose laws",
        "publication_date": about.date or datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    return made if about.sector is None else {**made, "data_product_sector": about.sector}


def private_fields(study: "Study") -> dict[str, dict[str, Any]]:
    """What is private about a study, section by section."""
    guarantee, names, config = study.guarantee, study.names, study.config
    times, (low, high) = guarantee.participations, study.reward_range
    source = "on each participant's device" if study.encoded else "from the operating system"
    exact = config["trust"]["calibration"] == "exact"
    words = notion_words(guarantee.notion)
    values = {
        "variant": "Approximate DP" if guarantee.delta else "Pure DP",
        "guarantee": guarantee,
        "notion": words["name"].capitalize(),
        "trust": config["trust"]["model"],
        "trusted": words["trusted"],
        "actors": " ".join(map(_actor, words["parties"])),
        "size": f"{len(names.steps)} steps with one of {len(names.states)} states, one of "
        f"{len(names.actions)} actions and a reward from {low:g} to {high:g}",
        "number": "Many releases" if study.batches != 1 else "One release",
        "releases": f"for each batch of different people, {study.batches:,}",
        "often": "once" if times == 1 else f"up to {times} times",
        "users": f"{study.users:,} of {study.episodes:,}",
        "across": "Batches are of different people, or composed exactly for who comes again.",
        "charged": _charged(study),
        "mechanism": study.mechanism.name,
        "statistics": ", ".join(study.mechanism.statistics),
        "version": software()["discreet"],
        "source": f"from a seed ({REHEARSED})" if guarantee.simulated else source,
        "why": "The least noise whose exact accounting keeps the guarantee"
        if exact
        else "Constants that a paper prints",
    }
    made: dict[str, dict[str, Any]] = {
        part: {name: text.format(**values) for name, text in fields.items()}
        for part, fields in _FIELDS.items()
    }
    budget = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "rho": guarantee.rho}
    given = {name: value for name, value in budget.items() if value is not None}
    made["privacy_loss"]["privacy_parameters"] = given
    return made


_FIELDS = {
    "dp_variant": {
        "variant_name": "{variant}",
        "data_domain": "Every list of participants with one well-formed episode each time they "
        "take part: {size}.",
        "unprotected_quantities": "Who took part, in which batch, and how many; the policies; "
        "states, actions, steps, reward range and cut points, which are fixed in public.",
    },
    "privacy_loss": {
        "privacy_unit": "{guarantee.unit}",
        "privacy_unit_details": "Adjacent data sets have the same participants and differ in "
        "{guarantee.unit}, replaced by any other ({guarantee.neighbours}).",
        "privacy_parameters_details": "{guarantee}. {notion}; for all that a person does in this "
        "study.",
    },
    "deployment_model": {
        "model_name": "{trust}",
        "model_name_details": "{trusted}",
        "actors": "{actors}",
        "release_type": "{number}",
        "release_type_details": "One release {releases} so far. A person takes part {often}; "
        "nothing is renewed.",
        "data_source_type": "Dynamic",
        "data_source_type_details": "Participants come over time: {users} participations so far.",
        "access_type": "Non-interactive",
        "access_type_details": "Policies and the dossier are published; nobody asks the data "
        "anything.",
    },
    "accounting": {
        "post_processing": "Counts are made consistent, a model is estimated, a policy is "
        "computed: from releases alone.",
        "composition": "Within a release: exact, over all counters at once. {across} {charged}",
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": "The software reads nothing off the data: "
        "names, ranges, cut points and settings stand in the design, whose hash begins the "
        "ledger. What people looked at before, no software sees.",
        "mechanisms": "{mechanism} on counts of {statistics}, by discreet {version}. Noise is "
        "drawn as integers, exactly, {source}; releases are integers. Times are not hidden. The "
        "study's file holds no episode, and keyed digests of names.",
        "justification": "{why}; the dossier has a certificate, or says why not, and attacks.",
    },
}


def notion_words(notion: str) -> dict[str, Any]:
    """What the dossier says of a notion of privacy."""
    from discreet.study.dossier.page import environment

    words: dict[str, Any] = environment().get_template("words.html").module.notions[notion]
    return words


def _actor(party: tuple[str, str, str]) -> str:
    who, sees, what = party
    trusted = "is not trusted" if what == "nothing" else f"is trusted {what}"
    return f"{who}: sees {sees}; {trusted}.".replace("this page", "the dossier")


def _charged(study: "Study") -> str:
    one, every = study.mechanism.guarantee.epsilon, study.guarantee.epsilon
    if one == every:
        return "A person's whole participation is charged."
    return f"A batch was opened again: {every / one:.0f} releases are charged."


def _pyramid(study: "Study") -> str:
    """The layers of NIST SP 800-226, from the top."""
    guarantee, told = study.guarantee, private_fields(study)
    model, made = told["deployment_model"], told["implementation"]
    rehearsed = f"{REHEARSED}. " if guarantee.simulated else ""
    return (
        f"{rehearsed}By NIST SP 800-226. Guarantee: {guarantee}. Unit: {guarantee.unit}. "
        f"Algorithm: {study.config['learner']}; its answer comes with standard errors of noise and "
        f"chance, and it defers to what is done today where they are too large. Query model: "
        f"{model['access_type'].lower()}. Threat model: {model['model_name_details']} Mechanism "
        f"implementation: {made['mechanisms']} Data security, access control and data collection: "
        f"the operator's, beyond the software; {model['actors']}"
    )
