"""The entry for a public registry: the fields that it takes, and the same on the first page."""

from html import unescape

import pytest

pytest.importorskip("jinja2")

import discreet
from discreet.errors import StudyError
from discreet.privacy.guarantee import REHEARSED
from discreet.study.dossier.page import Material, render
from discreet.study.dossier.registry import About, open_fields, registry_entry, rows
from helpers.dossiers import section, small

# What opendp/deployments-registry-data takes (schemas/deployments-schema.yaml, July 2026).
FIELDS = {
    "basic": {"name", "data_curators", "description", "intended_use", "data_product_type",
              "data_product_region", "publication_date", "data_product_sector"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters",
                     "privacy_parameters_details"},
    "deployment_model": {"model_name", "model_name_details", "actors", "release_type",
                         "release_type_details", "data_source_type", "data_source_type_details",
                         "access_type", "access_type_details"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"notes", "registry_authors"},
}  # fmt: skip
ONE_OF = {
    "variant_name": {"Pure DP", "Approximate DP"},
    "model_name": {"Central", "Local", "Shuffle"},
    "release_type": {"One release", "Many releases"},
    "data_source_type": {"Dynamic"},
    "access_type": {"Non-interactive"},
    "data_product_type": {"Machine learning model"},
}
WHOLE = About(name="Care", curators=("A clinic",), use="care", region="EU", date="2026-11-18",
              sector="Healthcare", authors=("Me",))  # fmt: skip
TRUSTS = {
    "central": discreet.Central(1, 1e-6),
    "rho": discreet.Central(rho=0.1),
    "local": discreet.Local(2),
    "shuffle": discreet.Shuffle(1, 1e-6),
}


@pytest.fixture(params=TRUSTS)
def study(request, tmp_path):
    changes = {"episodes": 2_000} if request.param == "shuffle" else {}
    return small(tmp_path / "study.db", TRUSTS[request.param], **changes)


def test_it_has_every_field_and_no_other(study):
    entry = registry_entry(study, WHOLE)
    assert {part: set(fields) for part, fields in entry["deployment"].items()} == FIELDS
    told = {name: x for part in entry["deployment"].values() for name, x in part.items()}
    assert all(told[name] in known for name, known in ONE_OF.items())
    assert all(told.values())
    assert open_fields(entry) == []
    guarantee = study.guarantee
    budget = {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
    if guarantee.rho is not None:
        budget["rho"] = guarantee.rho
    assert told["privacy_parameters"] == budget
    assert (told["variant_name"] == "Pure DP") == (guarantee.delta == 0)
    assert str(guarantee) in told["privacy_parameters_details"]
    assert "NIST SP 800-226" in told["notes"]


def test_a_rehearsal_says_so_and_what_is_missing_is_named(study):
    entry = registry_entry(study)
    basic, notes = entry["deployment"]["basic"], entry["deployment"]["administrative"]["notes"]
    assert REHEARSED in basic["name"]
    assert notes.startswith(REHEARSED)
    assert entry["url_slug"] == "study_simulated_protects_nobody"
    assert open_fields(entry) == [
        "deployment.basic.data_curators.0", "deployment.basic.intended_use",
        "deployment.basic.data_product_region", "deployment.administrative.registry_authors.0",
    ]  # fmt: skip


@pytest.mark.parametrize("study", ["central", "local"], indirect=True)
def test_the_first_page_says_the_same(study):
    page = unescape(section(render(Material(study, study.ledger, [], None, "", "")), 0))
    told = {
        x for part in registry_entry(study)["deployment"].values() for x in map(str, part.values())
    }
    for label, text in rows(study):
        assert f'<td class="k">{label}</td><td>{text}</td>' in page
        assert text in told


def test_who_guarantees_nothing_has_no_entry(tmp_path):
    study = small(tmp_path / "study.db", discreet.NoPrivacy())
    with pytest.raises(StudyError, match="guarantees nothing"):
        registry_entry(study)
    assert rows(study) == []


def test_releases_and_charges_are_counted(tmp_path):
    study = small(tmp_path / "study.db", discreet.Local(2))
    study.reissue(returning="seen")
    accounting = registry_entry(study)["deployment"]["accounting"]
    assert accounting["composition"].endswith("A batch was opened again: 2 releases are charged.")


@pytest.mark.parametrize("given", [{"sector": "Health"}, {"date": "18.11.2026"}])
def test_what_the_registry_refuses_is_refused(given):
    with pytest.raises(StudyError, match=r"Expected a (sector|date)"):
        About(**given)
