"""The report page: complete, self-contained, and without errors in a real browser."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from discreet.lab.report import render, write_figures, write_report
from discreet.lab.runner import run_experiment
from discreet.lab.spec import parse_experiment

EXPERIMENT = """
name = "page"
title = "A page with <angle> brackets & ampersands"
plots = ["regret", "per-episode", "by-episodes", "by-epsilon", "cost", "noise"]
runs = 2
episodes = [20, 40]
[[environments]]
name = "RandomMDP"
parameters = {states = 2, actions = 2, horizon = 2}
[[learners]]
name = "dp-ucbvi"
[[trusts]]
model = "none"
[[trusts]]
model = "local"
epsilon = [1.0, 4.0]
[[trusts]]
model = "central"
epsilon = [1.0]
calibration = "paper"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return run_experiment(parse_experiment(EXPERIMENT), folder, jobs=1).results


@pytest.fixture(scope="module")
def page(results):
    return render(results)


def test_page_refers_to_nothing_outside(page):
    outside = re.findall(r'(?:src|href)="(?!#|data:)([^"]+)"', page)
    assert outside == []
    assert "<script" not in page


def test_page_shows_every_figure_and_escapes_text(page):
    assert page.count("<figure><svg role") == 6
    assert "&lt;angle&gt; brackets &amp; ampersands" in page
    assert "<angle>" not in page


def test_identifiers_are_unique(page):
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_every_epsilon_comes_with_its_notion_unit_and_neighbours(page):
    assert "one user&#x27;s whole episode; replace-one" in page
    assert "(1, 0)-LDP" in page


def test_paper_constants_are_flagged_with_what_they_deliver(page):
    assert re.search(r"constants claim .* but deliver \(2", page)


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
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no Chromium on this machine; the page is not shown to a real browser")
    path = write_report(results)
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count("<svg role") == 6
    assert done.stdout.rstrip().endswith("</html>")
