"""Sections say what the study says, number by number."""

import dataclasses
import json
import re

import pytest

pytest.importorskip("flint")

from discreet.privacy.certificates.document import verify
from discreet.study.dossier import page
from discreet.study.dossier.evidence import Proof


def test_batches_hashes_and_head(material):
    said = page.history(material)
    assert said.count("<tr>") == 3  # header, start, batch
    assert material.study.head[:16] in said
    assert str(material.entries[1]["policy"])[:16] in said
    assert f"<td>{material.study.users}</td>" in said
    assert material.study.head in page.hashes(material)
    assert str(material.entries[0]["config"]) in page.hashes(material)
    assert material.study.head in page.signature(material)


def test_a_long_history_is_cut_and_says_so(material):
    entries = [dict(material.entries[-1], number=i, previous=f"{i:064}") for i in range(100)]
    said = page.history(material._replace(entries=entries))
    assert "100 entries; the first 20 and the last 20 are shown" in said
    assert said.count("<tr>") == 41


def test_the_policy_is_the_studys(material):
    study, said = material.study, page.policy(material)
    names, answer = study.names, study.answer
    cells = re.findall(r"<td>([^<]*)</td>", said)
    rows = [cells[i : i + 3] for i in range(0, len(cells), 3)]
    assert [row[0] for row in rows] == ["ill &lt;b&gt;", "better", "well"]
    for s, row in enumerate(rows):
        for h, text in enumerate(row[1:]):
            action = names.actions[answer.policy.actions[h, s]].replace("&", "&amp;")
            assert text == (action if answer.known[h, s] else f"({action})")
    assert str(study.value) in said
    assert "<svg" in said


def test_a_long_policy_is_cut_and_says_so(material, monkeypatch):
    for widest, cut in ((12, "The first 2 of 3."), (1, "The first 2 of 6.")):
        monkeypatch.setattr(page, "_WIDEST", widest)
        assert cut not in page.policy(material)
        with monkeypatch.context() as shorter:
            shorter.setattr(page, "_MOST_ROWS", 2)
            assert cut in page.policy(material)


def test_the_embedded_certificate_holds(material):
    said = page.noise(material)
    text = material.proofs[0].text
    assert verify(json.loads(text), of=material.study.plan) <= 1e-6
    assert material.proofs[0].digest in said
    assert 'download="certificate-0.json"' in said
    assert "discrete-" in said


def test_every_claim_has_a_command(material):
    said = page.checking(material)
    checks = ("certify --verify", "audit central/", "check study")
    for command in ("study verify", "study show", *checks, "study policy", "study report"):
        assert f"<code>discreet {command}" in said
    assert material.study.head in said
    assert "--epsilon 1.0 --delta" in said


def test_parameters(material):
    said = page.parameters(material)
    assert "flow-ucb" in said
    assert "model Central, epsilon 1, delta 1e-06" in said
    assert "better" in said


def test_an_audit_that_fails_says_so(material):
    bad = material.audit.__class__(**{**vars(material.audit), "attacked": 3.0})
    said = page.audit(material._replace(audit=bad))
    assert "THE PROMISE IS CONTRADICTED." in said
    assert "DOES NOT AGREE" in page.in_one_minute(material._replace(audit=bad))
    assert "Nothing contradicts the promise." in page.audit(material)


def test_several_releases_are_charged_in_words(tmp_path, material):
    from helpers.dossiers import small

    study = small(tmp_path / "study.db")
    study.reissue(returning="seen")
    said = page.promise(material._replace(study=study))
    assert "all are charged: ε = 2, δ = 0 (JDP) together" in said.replace("\n", " ")


def test_without_a_certificate_nothing_is_called_certified(material):
    for proofs in ([], [Proof(None, "No certificate: the extra is missing.")]):
        bare = material._replace(proofs=proofs)
        assert "not certified: see section 5" in page.in_one_minute(bare)
        unlisted = dataclasses.replace(material.audit, exact=None, unlisted="too many")
        assert "not computed: too many; nor certified" in page.audit(bare._replace(audit=unlisted))
    assert "There is no certificate: no batch was counted." in page.noise(
        material._replace(proofs=[])
    )
    assert "<td>certified</td>" in page.in_one_minute(material)


def test_sizes_of_batches_without_a_certificate_are_counted(material):
    batch = material.entries[1]
    entries = [*material.entries, dict(batch, users=7), dict(batch, users=8)]
    proven = material._replace(proofs=[Proof(int(batch["users"]), "proven", "{}", "0")])
    assert "2 smaller sizes of batches have no" in page.noise(proven._replace(entries=entries))
    assert "smaller sizes" not in page.noise(proven)
    assert "smaller sizes" not in page.noise(material._replace(entries=entries))


def test_commands_can_be_copied_whatever_the_file_is_called(material, monkeypatch):
    monkeypatch.setattr(material.study, "path", material.study.path.with_name("a; rm -rf b.db"))
    assert "discreet study verify &#x27;a; rm -rf b.db&#x27; --head" in page.checking(material)
