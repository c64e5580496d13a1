"""The report page: complete, self-contained, and without errors in a real browser."""

import builtins
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from discreet.errors import MissingExtraError
from discreet.lab.report import render, write_figures, write_report
from discreet.lab.runner import run_experiment
from discreet.lab.style import noise_of
from helpers.browser import dump_dom
from helpers.experiments import experiment, without

EXPERIMENT = experiment(
    "dp-ucbvi",
    name="page",
    title="A page with <angle> brackets & ampersands",
    plots=["regret", "per-episode", "by-episodes", "by-epsilon", "cost", "noise"],
    runs=2,
    episodes=[20, 40],
    trusts=[
        {"model": "none"},
        {"model": "local", "epsilon": [1.0, 4.0]},
        {"model": "central", "epsilon": [1.0], "calibration": "paper"},
    ],
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return run_experiment(EXPERIMENT, folder, jobs=1).results


@pytest.fixture(scope="module")
def page(results):
    return render(results)


def test_page_refers_to_nothing_outside(page):
    outside = re.findall(r'(?:src|href)="(?!#|data:)([^"]+)"', page)
    assert outside == []
    assert "<script" not in page


def test_page_shows_every_figure_and_escapes_text(page):
    assert page.count("<figure><svg role") == 6 + 4  # figures, policies
    assert "&lt;angle&gt; brackets &amp; ampersands" in page
    assert "<angle>" not in page


def test_identifiers_are_unique(page):
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_every_epsilon_comes_with_its_notion_unit_and_neighbours(page):
    assert "one user&#39;s whole episode; replace-one" in page
    assert "(1, 0)-LDP" in page


def test_paper_constants_are_flagged_with_what_they_deliver(page):
    assert re.search(r"constants claim .* but deliver \(2", page)


def test_the_noise_is_the_one_that_the_runs_stated(results, brief, page):
    table = page.partition("<h2>Noise</h2>")[2].partition("<h2>")[0]
    private = [entry for entry in results.guarantees if entry["trust"] != "none"]
    assert table.count("<tr>") == 1 + len(private)
    for entry in private:
        assert noise_of(entry["noise"]) in table
        assert f"<td>{entry['mechanism']}</td>" in table
    changed = [entry | {"noise": {"visits": 4321.0}} for entry in results.guarantees]
    assert render(replace(brief, guarantees=changed)).count("visits 4,321") == len(private)


@pytest.fixture(scope="module")
def brief(results):
    """The same results with one picture: pages that are drawn quickly."""
    return replace(results, experiment=replace(results.experiment, plots=("cost",)))


def test_one_learner_has_nobody_to_beat_and_no_noise(brief):
    page = render(replace(brief, guarantees=brief.guarantees[:1]))
    assert "Only one learner ran: nothing to compare." in page
    assert "No run was private: there is no noise." in page
    assert '<div class="warn">' not in page


def test_a_mechanism_that_was_asked_for_is_named(brief):
    plain, asked = brief.guarantees[2], brief.guarantees[2] | {"requested": "laplace"}
    page = render(replace(brief, guarantees=[plain, asked]))
    assert page.count("<th>learner</th>") == 3  # regret, guarantees, noise
    assert "<td>dp-ucbvi (laplace)</td>" in page


def test_what_all_rows_share_is_no_column_and_words_are_explained(page):
    assert "<th>learner</th>" not in page
    assert "<th>trust</th>" in page
    assert "Regret: the reward that K users lost" in page
    assert "LDP, local" in page


def test_policies_are_shown_where_they_are_small_enough(brief):
    assert "<h2>Learned policies</h2>" in render(brief)
    nothing = replace(brief, policies=dict.fromkeys(brief.policies))
    assert "<h2>Learned policies</h2>" not in render(nothing)


def test_several_environments_stand_in_a_column(brief):
    first, second = brief.guarantees[2:4]
    page = render(replace(brief, guarantees=[first, second | {"environment": "<Other>"}]))
    assert page.count("<th>environment</th>") == 2  # regret and noise
    assert page.count("<td>&lt;Other&gt;</td>") == 2


@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_a_missing_package_and_its_extra_are_named(results, monkeypatch, package):
    monkeypatch.setattr(builtins, "__import__", without(package))
    with pytest.raises(MissingExtraError, match=f"'{package}' is not installed.*'lab'"):
        render(results)


def test_page_is_the_same_when_written_again(results, page):
    assert render(results) == page


def test_figures_are_written_as_svg_and_png(results):
    paths = write_figures(results)
    assert len(paths) == 12
    for path in paths:
        if path.suffix == ".svg":
            ElementTree.parse(path)
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_page_loads_in_a_browser_without_errors(results, tmp_path):
    page = dump_dom(write_report(results).as_uri(), tmp_path)
    assert page.count("<svg role") == 6 + 4
    assert page.rstrip().endswith("</html>")
