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
from helpers.registries import forget_afterwards

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.toml)\n")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if "\n```python\n" in page.read_text("utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_has_a_text(page):
    # The site would fill in a title; whoever reads the file itself would see nothing.
    assert "[](" not in page.read_text("utf-8")


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
    if page.name == "study.md":
        check_the_tutorial(tmp_path)


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
    assert (folder / "past-policy.csv").exists()
