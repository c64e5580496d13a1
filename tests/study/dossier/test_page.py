"""The dossier as a page: self-contained, complete, its numbers the study's, rehearsals named."""

import base64
import dataclasses
import json
import math
import os
import re
import shutil
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jinja2")

import discreet
from discreet.errors import MissingExtraError, StudyError
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.guarantee import NO_GUARANTEE, NOTIONS, REHEARSED, Guarantee
from discreet.study.dossier import page as pages
from discreet.study.dossier.evidence import Proof
from discreet.study.dossier.page import Material, digest_of_sources, gather, in_numbers, render
from helpers.dossiers import section, small
from helpers.studies import everything_in, reports_of, sql

RIVER = discreet.make("RiverSwim", states=3, horizon=2, relabel=1)


class Balanced(HTMLParser):
    """Every tag that opens closes."""

    VOID = ("meta", "link", "br", "rect")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.VOID or self.open.pop() == tag, tag


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """A rehearsal with one batch."""
    study = small(tmp_path_factory.mktemp("dossier") / "study.db")
    episodes = sample_trajectories(RIVER, study.ask(), study.batch_size, np.random.default_rng(0))
    study.tell(episodes, users=[f"user-{i}" for i in range(len(episodes))])
    return gather(study)


@pytest.fixture(scope="module")
def page(material):
    return render(material)


def test_it_is_one_page_that_needs_nothing_else(page):
    checker = Balanced()
    checker.feed(page)
    assert checker.open == []
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page)
    assert "<script" not in page
    assert "url(" not in page
    assert 'name="viewport"' in page
    assert "@media print" in page


def test_the_first_minute_comes_first(page):
    cards = [page.index(f"<h2>{name}</h2>") for name in (
        "Who is trusted", "What is guaranteed", "What is not protected")]  # fmt: skip
    assert cards == sorted(cards)
    assert cards[-1] < page.index("<h2>1. ")
    assert [int(n) for n in re.findall(r"<h2>(\d+)\. ", page)] == list(range(1, 12))


def test_a_rehearsal_says_so_in_every_table_and_above_the_signature(page):
    assert page.count(f"<caption>{REHEARSED}</caption>") == page.count("<table>")
    assert page.count('<div class="banner">') == 4


def test_a_secure_study_does_not(tmp_path):
    study = small(tmp_path / "study.db", sampler="secure", seed=None)
    page = render(gather(study))
    assert "SIMULATED" not in page
    assert "of the operating system" in page


def test_names_are_escaped(page):
    """Those of states, actions and steps; the file's is escaped for the shell, too."""
    assert "ill &lt;b&gt;" in page
    assert "treat &amp; see" in page
    assert "ill <b>" not in page
    assert "treat & see" not in page


def test_nothing_secret_is_on_it(material, page):
    study = material.study
    assert study._key.hex() not in page
    assert "user-0" not in page


def test_reading_changes_nothing_and_the_page_is_whole(tmp_path):
    study = small(tmp_path / "study.db", discreet.NoPrivacy())
    before = everything_in(tmp_path)
    steps = []
    assert study.report(tmp_path / "page.html", steps.append) == tmp_path / "page.html"
    page = (tmp_path / "page.html").read_text("utf-8")
    (tmp_path / "page.html").unlink()
    assert everything_in(tmp_path) == before
    assert steps[0] == "the file"
    assert "Nothing is guaranteed: there is nothing to audit." in page
    assert REHEARSED not in page.replace(f"<td>{REHEARSED}</td>", "")  # no promise, no rehearsal


def test_a_local_study_has_its_dossier(tmp_path):
    """From the first report to the page: nobody is trusted, the noise is certified and audited."""
    pytest.importorskip("flint")
    study = small(tmp_path / "study.db", discreet.Local(2))
    for k in range(2):
        episodes = sample_trajectories(RIVER, study.ask(), 1, np.random.default_rng(k))
        study.tell(reports_of(study, episodes, k), users=[f"user-{k}"], token=study.token)
    study.close()
    page = study.report(tmp_path / "page.html").read_text("utf-8")
    assert "Nobody is trusted with a raw episode" in page
    assert "ε = 2, δ = 0 (LDP)" in page
    assert "2 of 300, in 2 batches; the study was closed after 2 users" in page
    assert "<td>certified</td>" in page
    assert "<td>agrees with the guarantee</td>" in page
    assert "Every path of local/" in page


def test_what_the_counts_contradict_is_said_beside_the_policy(material, monkeypatch):
    monkeypatch.setattr(type(material.study), "notes", ("declared & contradicted",))
    assert '<p class="fails">declared &amp; contradicted</p>' in section(render(material), 7)


def test_what_cannot_be_written_is_refused_before_the_audit(tmp_path, monkeypatch):
    study = small(tmp_path / "study.db")
    for path, said in (("page.pdf", r"ends in \.html"), ("none/page.html", "folder that exists")):
        with pytest.raises(StudyError, match=said):
            study.report(tmp_path / path, lambda _: pytest.fail("it began"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StudyError, match="takes files"):
        study.report(tmp_path / "page.html", lambda _: pytest.fail("it began"))
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]


def test_a_file_that_was_edited_gets_no_dossier(tmp_path):
    study = small(tmp_path / "study.db")
    sql(study.path, "UPDATE ledger SET entry = replace(entry, 'start', 'begin')")
    with pytest.raises(StudyError, match="edited or damaged"):
        study.report(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_digest_of_the_sources_is_of_them_all(tmp_path, monkeypatch):
    """Of every byte and name of each: whichever file is changed or moved, it is another one."""
    home = Path(pages.__file__)
    root = home.parents[2]
    copied = shutil.copytree(root, tmp_path / "discreet", ignore=lambda *_: {"__pycache__"})
    monkeypatch.setattr(pages, "__file__", str(copied / home.relative_to(root)))
    seen = [digest_of_sources()]
    files = [*sorted(copied.rglob("*.py"))[::40], *copied.rglob("*.html")]
    for file in files:
        file.write_bytes(file.read_bytes() + b" ")
        seen.append(digest_of_sources())
    files[0].rename(files[0].with_name("another.py"))
    seen.append(digest_of_sources())
    assert len(set(seen)) == len(files) + 2
    assert all(re.fullmatch(r"[0-9a-f]{64}", one) for one in seen)


def test_a_page_needs_its_extra_and_says_so_before_the_audit(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"discreet\[certify\]"):
        small(tmp_path / "study.db").report(tmp_path / "page.html", lambda _: pytest.fail("began"))


def test_batches_hashes_and_head(material, page):
    said = section(page, 8)
    assert said.count("<tr>") == 3  # header, start, batch
    assert material.study.head[:16] in said
    assert str(material.entries[1]["policy"])[:16] in said
    assert f"<td>{material.study.users}</td>" in said
    assert material.study.head in section(page, 9)
    assert str(material.entries[0]["config"]) in section(page, 9)
    assert material.study.head in section(page, 11)


def test_a_long_history_is_cut_and_says_so(material):
    entry = material.entries[-1] | {"config": "x"}
    entries = [dict(entry, number=i, previous=f"{i:064}") for i in range(100)]
    said = section(render(dataclasses.replace(material, entries=entries)), 8)
    assert "100 entries; the first 20 and the last 20 are shown" in said
    assert said.count("<tr>") == 41


def test_the_policy_is_the_studys(material, page):
    study, said = material.study, section(page, 7)
    names, answer = study.names, study.answer
    cells = [unescape(cell) for cell in re.findall(r"<td>([^<]*)</td>", said)]
    rows = [cells[i : i + 3] for i in range(0, len(cells), 3)]
    assert [row[0] for row in rows] == ["ill <b>", "better", "well"]
    for s, row in enumerate(rows):
        for h, text in enumerate(row[1:]):
            action = names.actions[answer.policy.actions[h, s]]
            said_so = f"({action})" if answer.defer[h, s] else f"{action} +"
            assert text.startswith(said_so)
    assert f"Worth {study.said(study.value)} per episode" in said


def test_the_picture_shows_every_square_and_where_the_study_defers(material, page):
    answer, said = material.study.answer, section(page, 7)
    assert said.count("<rect") == answer.defer.size
    assert said.count('fill-opacity="0.25"') == answer.defer.sum() > 0
    assert said.count(" (deferred: the default)</title>") == answer.defer.sum()
    first = 1 + answer.policy.actions[0, 0]
    number = f"({first})" if answer.defer[0, 0] else first
    assert f'text-anchor="middle">{number}</text>' in said  # readable without colours
    assert "</i>2 treat &amp; see</span>" in said


def test_a_large_problem_is_cut_and_long_names_are_shortened(tmp_path):
    states = [f"a state with a long name {i}" for i in range(2_001)]
    study = small(tmp_path / "study.db", discreet.NoPrivacy(), learner="trial", states=states,
                  actions=9, horizon=1, start_states=None, stationary=True)  # fmt: skip
    said = section(render(Material(study, study.ledger, [], None, "", "")), 7)
    assert said.count("<rect") == 60
    assert "a state with a lon…</text>" in said
    assert "The picture shows the first 60 states and 1 steps." in said
    assert "The first 2,000 of 2,001." in said
    keys = re.findall(r"background:(#\w+)", said)
    assert (len(keys), keys[8]) == (9, keys[0])


def test_many_steps_stand_below_each_other(tmp_path):
    study = small(tmp_path / "study.db", discreet.NoPrivacy(), horizon=13)
    said = section(render(Material(study, study.ledger, [], None, "", "")), 7)
    assert "<th>step</th><th>state</th><th>action</th>" in said
    assert said.count("<tr>") == 1 + 13 * 3
    assert "The first" not in said


def test_the_embedded_certificate_holds(material, page):
    pytest.importorskip("flint")
    from discreet.privacy.certificates.document import verify

    said = section(page, 5)
    embedded = re.search(r'download="certificate-0.json" href="data:[^,]*,([^"]*)"', said)[1]
    text = material.proofs[0].text
    assert base64.b64decode(embedded).decode() == f"{text}\n"
    assert verify(json.loads(text), of=material.study.mechanism) <= 1e-6
    assert material.proofs[0].digest in said
    assert "discrete-" in said


def test_every_claim_has_a_command(material, page):
    said = section(page, 10)
    checks = ("certify --verify", "audit central/")
    for command in ("study verify", *checks, "study policy", "study bundle"):
        assert f"<code>discreet {command}" in said
    alone = re.findall(r"<td>the bundle and Python</td><td><code>(.*?)</code>", said)
    proofs = ["python -I verify.py certificate-0.json"] * bool(material.proofs[0].text)
    assert alone == [f"python -I review.py --head {material.study.head}", *proofs]
    assert material.study.head in said
    assert "--epsilon 1.0 --delta" in said


def test_parameters(page):
    said = section(page, 4)
    assert "flow-ucb" in said
    assert "model Central, epsilon 1, delta 1e-06" in said
    assert "better" in said


def test_an_audit_that_fails_says_so(material, page):
    bad = dataclasses.replace(material.audit, attacked=3.0, problems=("a leak",))
    said = render(dataclasses.replace(material, audit=bad))
    assert "THE GUARANTEE IS CONTRADICTED." in section(said, 6)
    assert "a leak" in section(said, 6)
    assert "DOES NOT AGREE" in section(said, 0)
    assert "Nothing contradicts the guarantee." in section(page, 6)


def test_several_releases_are_charged_in_words(tmp_path, material, page):
    study = small(tmp_path / "study.db")
    study.reissue(returning="seen")
    said = section(render(dataclasses.replace(material, study=study)), 1)
    assert "all are charged: ε = 2, δ = 0 (JDP) together" in said.replace("\n", " ")
    assert "charged" not in section(page, 1)


def test_without_a_certificate_nothing_is_called_certified(material, page):
    for proofs in ([], [Proof(None, "No certificate: the extra is missing.")]):
        unlisted = dataclasses.replace(material.audit, exact=None, unlisted="too many")
        said = render(dataclasses.replace(material, proofs=proofs, audit=unlisted))
        assert "not certified: see section 5" in section(said, 0)
        assert "not computed: too many; nor certified" in section(said, 6)
    said = render(dataclasses.replace(material, proofs=[]))
    assert "There is no certificate: no batch was counted." in section(said, 5)
    proven = render(dataclasses.replace(material, proofs=[Proof(None, "proven", "{}", "0")]))
    assert "<td>certified</td>" in section(proven, 0)


def test_sizes_of_batches_without_a_certificate_are_counted(material, page):
    batch = material.entries[1]
    entries = [*material.entries, dict(batch, users=7), dict(batch, users=8)]
    proven = dataclasses.replace(material, proofs=[Proof(int(batch["users"]), "proven", "{}", "0")])
    said = section(render(dataclasses.replace(proven, entries=entries)), 5)
    assert "2 smaller sizes of batches have no" in said
    for other in (proven, dataclasses.replace(material, entries=entries)):
        assert "smaller sizes" not in render(other)


def test_commands_can_be_copied_whatever_the_file_is_called(material, monkeypatch):
    monkeypatch.setattr(material.study, "path", material.study.path.with_name("a; <rm> -r b.db"))
    said = render(material)
    assert "discreet study verify 'a; <rm> -r b.db' --head" in unescape(section(said, 10))
    assert "<rm>" not in said


def test_every_notion_has_its_words(tmp_path):
    trusts = {"JDP": discreet.Central(1), "LDP": discreet.Local(1),
              "SDP": discreet.Shuffle(1, 1e-6), "none": discreet.NoPrivacy()}  # fmt: skip
    assert set(trusts) == set(NOTIONS)
    pages = set()
    for notion, trust in trusts.items():
        study = small(tmp_path / notion, trust)
        said = render(Material(study, study.ledger, [], None, "", ""))
        assert section(said, 2).count("<tr>") >= 1 + 3
        assert section(said, 3).count("<li>") >= 1 + 5
        pages.add(section(said, 2))
    assert len(pages) == 4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_bounds_are_rounded_up(epsilon):
    said = in_numbers(Guarantee(notion="JDP", epsilon=epsilon, delta=1e-6))
    factor = float(said[0].split("more than ")[1].split(" times")[0])
    right = float(said[1].split("at most ")[1].split("%")[0])
    assert math.exp(epsilon) <= factor <= 1.02 * math.exp(epsilon)
    exact = 100 * (math.exp(epsilon) + 1e-6) / (math.exp(epsilon) + 1)
    assert exact <= right <= exact + 0.1
    odds = float(said[2].split("at most ")[1].split(" to 9")[0])
    assert math.exp(epsilon) + 0.001 <= odds <= 1.02 * math.exp(epsilon) + 0.001
    percent = float(said[2].split(" to 9 (")[2].split("%")[0])
    assert 100 * odds / (odds + 9) - 0.2 <= percent <= 100 * odds / (odds + 9) + 0.1
    assert "if they would conclude it from 1 in 1,000 other records" in said[2]
    risk = float(said[3].split("at most ")[1].split(" in 100")[0])
    assert min(100, math.exp(epsilon) + 1e-4) <= risk <= 1.02 * math.exp(epsilon)
    assert "one in 1,000,000" in said[4] or "one in 999,999" in said[4]


def test_what_is_beyond_doubles_is_not_said_to_be_less():
    said = in_numbers(Guarantee(notion="JDP", epsilon=800.0, delta=3e-7))
    assert "more than inf times" in said[0]
    assert "at most 100% of cases" in said[1]
    assert "inf to 9 (100%)" in said[2]
    assert "at most 100 in 100" in said[3]
    assert "This is weak: epsilon = 800" in said[4]
    assert "one in 3,333,333." in said[5]


def test_a_large_delta_makes_guesses_better():
    said = in_numbers(Guarantee(notion="JDP", epsilon=1.0, delta=0.25))
    assert f"at most {math.ceil(1000 * (math.e + 0.25) / (math.e + 1)) / 10:g}%" in said[1]
    assert "at most 253 to 9" in said[2]
    assert f"at most {math.ceil(10 * (math.e + 25)) / 10:g} in 100" in said[3]
    assert "at most one in 4." in said[4]


def test_a_pure_promise_has_no_chance_of_failure():
    said = in_numbers(Guarantee(notion="LDP", epsilon=1.0, delta=0.0))
    assert len(said) == 4
    assert said[2].endswith("at most 2.72 to 9 (23.2%) after seeing everything.")
    assert in_numbers(NO_GUARANTEE) == ("Whoever sees what is published may learn everything.",)
