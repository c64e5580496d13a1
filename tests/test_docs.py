"""The README and the docs run as they stand, each page from top to bottom.

Every Python block; on pages that give a file (a TOML block whose first line is its name) the file
and the commands besides.
"""

import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from discreet.cli import app
from discreet.learners.registry import learner_names
from discreet.privacy.mechanisms.registry import everything
from helpers.registries import forget_afterwards

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.toml)\n")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if "\n```python\n" in page.read_text("utf-8")]


def words_of(text):
    """What a person reads: without code, comments and what is generated."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    return len(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).split())


def test_pages_are_short_and_links_have_texts():
    """The site would fill in a title of a link; whoever reads the file itself would see nothing."""
    texts = {page: page.read_text("utf-8") for page in PAGES}
    most = {page: 2_500 if "understand" in page.parts else 1_500 for page in PAGES}
    assert [page.name for page, text in texts.items() if words_of(text) > most[page]] == []
    assert [page.name for page, text in texts.items() if "[](" in text] == []


def headings(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^## (.*)$", text, re.MULTILINE)


LEARNER = (
    "When to use it",
    "Algorithm",
    "Bonus",
    "Privacy",
    "Settings",
    "Example",
    "Results",
    "What does not work",
    "References",
)
MECHANISM = ("Idea", "Who adds what", "Formula", "Proof", "Noise", "Example", "When to use it")


def pages_of(folder, *others):
    pages = sorted((ROOT / "docs/understand" / folder).glob("*.md"))
    return [page for page in pages if page.stem not in others]


@pytest.mark.parametrize("page", pages_of("learners", "index", "continual", "fit"), ids=str)
def test_learner_pages_have_one_template(page):
    assert tuple(headings(page)) == LEARNER


@pytest.mark.parametrize("page", pages_of("mechanisms", "index", "vectors"), ids=str)
def test_mechanism_pages_have_one_template(page):
    assert tuple(headings(page))[: len(MECHANISM)] == MECHANISM


def test_every_learner_and_every_mechanism_has_a_page():
    learners = {p.stem for p in (ROOT / "docs/understand/learners").glob("*.md")}
    assert set(learner_names()) - {"pe"} <= learners  # sdp-pe without privacy, on its page
    pages = (ROOT / "docs/understand/mechanisms").glob("*.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    for name in {mechanism.name for mechanism in everything()}:
        assert f"`{name}`" in text


def run_command(line, monkeypatch):
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 0, line


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    forget_afterwards(monkeypatch)
    namespace = {"__name__": "__main__"}
    files = 0
    for kind, block in BLOCK.findall(page.read_text("utf-8")):
        if kind == "python":
            exec(compile(block, str(page), "exec"), namespace)
        elif kind == "toml" and (name := FILE.match(block)):
            (tmp_path / name[1]).write_text(block)
            files += 1
        elif kind == "console" and files:
            for line in block.splitlines():
                run_command(line.removeprefix("$ "), monkeypatch)
    if page.match("start/first-study.md"):
        check_the_tutorial(tmp_path)
    if page.match("engineer/logs.md"):
        assert (tmp_path / "past-policy.csv").exists()


def check_the_tutorial(folder):
    """It ends with what it promises: a policy, and a page that says what it is."""
    from discreet.privacy.guarantee import REHEARSED

    with zipfile.ZipFile(folder / "review.zip") as archive:
        archive.extractall(folder / "review")
    review = [sys.executable, "-I", "-S", "review.py"]
    done = subprocess.run(review, cwd=folder / "review", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    page = (folder / "review" / "dossier.html").read_text("utf-8")
    assert page.count(REHEARSED) > 10
    assert "Nothing contradicts the guarantee." in page
    assert "is proven" in page
    assert "lost to care" in page
    rows = (folder / "policy.csv").read_text().splitlines()
    assert len(rows) == 1 + 7 * 4
    assert all(REHEARSED in row for row in rows[1:])
