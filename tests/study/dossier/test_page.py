"""The dossier as a page: self-contained, complete, honest about rehearsals."""

import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import discreet
from discreet.errors import StudyError
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.guarantee import REHEARSED
from discreet.study.dossier.page import SECTIONS, digest_of_sources, gather, render
from helpers.dossiers import small
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
        "Who is trusted", "What is promised", "What is not protected")]  # fmt: skip
    assert cards == sorted(cards)
    assert cards[-1] < page.index("<h2>1. ")
    assert all(f"<h2>{name}</h2>" in page for name in SECTIONS)


def test_a_rehearsal_says_so_in_every_table_and_above_the_signature(page):
    assert page.count(f"<caption>{REHEARSED}</caption>") == page.count("<table>")
    assert page.count('<div class="banner">') == 4


def test_a_secure_study_does_not(tmp_path):
    study = small(tmp_path / "study.db", sampler="secure", seed=None)
    page = render(gather(study))
    assert "SIMULATED" not in page
    assert "of the operating system" in page


def test_names_are_escaped(page):
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
    assert "Nothing is promised: there is nothing to audit." in page
    assert REHEARSED not in page.replace(f"<td>{REHEARSED}</td>", "")  # no promise, no rehearsal


def test_a_local_stream_has_its_dossier(tmp_path):
    """From the first report to the page: nobody is trusted, the noise is certified and audited."""
    pytest.importorskip("flint")
    study = small(tmp_path / "study.db", discreet.Local(2), learner="ldp-obi")
    for k in range(2):
        episodes = sample_trajectories(RIVER, study.ask(), 1, np.random.default_rng(k))
        study.tell(reports_of(study, episodes, k), users=[f"user-{k}"])
    study.close()
    page = study.report(tmp_path / "page.html").read_text("utf-8")
    assert "Nobody is trusted with a raw episode" in page
    assert "ε = 2, δ = 0 (LDP)" in page
    assert "2 of 300, in 2 batches; the study has ended" in page
    assert "<td>certified</td>" in page
    assert "<td>agrees with the promise</td>" in page
    assert "Every path of local/" in page


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


def test_the_digest_of_the_sources_is_of_them_all():
    assert re.fullmatch(r"[0-9a-f]{64}", digest_of_sources())
    assert digest_of_sources() == digest_of_sources()
