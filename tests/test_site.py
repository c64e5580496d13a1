"""The built site stands on its own: no script, style, font or picture comes from another host."""

import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from discreet import errors
from discreet.device.description import CODES
from discreet.learners.registry import get_learner, learner_names

DOCS = Path(__file__).parents[1] / "docs"
API_PAGE = (DOCS / "reference" / "api.md").read_text("utf-8")
API = re.findall(r"^\.\. auto\w+:: (\S+)", API_PAGE, re.M)
PUBLIC = (
    *("discreet", "discreet.adversarial", "discreet.auditing", "discreet.data", "discreet.device"),
    *("discreet.lab", "discreet.learners", "discreet.mdp", "discreet.privacy", "discreet.study"),
)
LOADED = re.compile(r"<(?:script|link|img|iframe|source|object)\b[^>]*>", re.IGNORECASE)
TARGET = re.compile(r"(?:src|href|data)\s*=\s*[\"']\s*((?:https?:)?//[^\"']+)", re.IGNORECASE)
IN_STYLE = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])((?:https?:)?//[^\"')]+)")


def foreign(text):
    """Addresses that a browser would load while showing the page (links to follow are fine)."""
    tags = [target for tag in LOADED.findall(text) for target in TARGET.findall(tag)]
    return tags + IN_STYLE.findall(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Three pages with formulas, figures and code; the whole site is built by `make docs`."""
    pytest.importorskip("furo")
    pytest.importorskip("latex2mathml")
    source, out = tmp_path_factory.mktemp("docs"), tmp_path_factory.mktemp("html")
    (source / "_extensions").symlink_to(DOCS / "_extensions")
    (source / "figures").symlink_to(DOCS / "figures")
    (source / "_static").symlink_to(DOCS / "_static")
    (source / "conf.py").write_text((DOCS / "conf.py").read_text("utf-8"), "utf-8")
    (source / "index.md").write_text("# Index\n\n```{toctree}\nerrata\ngallery\n```\n", "utf-8")
    for name, page in {
        "errata": "understand/papers/errata.md",
        "gallery": "reference/gallery.md",
    }.items():
        text = re.sub(r"\[([^]]*)\]\([^)]*\.md(#[^)]*)?\)", r"\1", (DOCS / page).read_text("utf-8"))
        text = re.sub(r"(?:\.\./)+figures/", "figures/", text)
        (source / f"{name}.md").write_text(text, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", source, out]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_nothing_is_loaded_from_elsewhere(site):
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 4
    assert {f.name: found for f in files if (found := foreign(f.read_text("utf-8")))} == {}


def test_every_formula_is_drawn_by_the_browser(site):
    written = len(
        re.findall(r"\$[^$\n]+\$", (DOCS / "understand/papers/errata.md").read_text("utf-8"))
    )
    page = (site / "errata.html").read_text("utf-8")
    assert page.count("<math") == written > 20
    assert "<mi>\\" not in page  # an unknown command would stand there as it was written


@pytest.mark.parametrize(
    "text",
    [
        '<script async src="https://cdn.example/mathjax.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        "<style>@import 'https://fonts.example/a.css';</style>",
        "src: url(https://fonts.example/a.woff2)",
    ],
)
def test_the_search_finds_what_it_looks_for(text):
    assert len(foreign(text)) == 1


def test_a_link_to_follow_is_not_loaded():
    assert foreign('<a href="https://arxiv.org/abs/2010.07778">paper</a>') == []


@pytest.fixture(scope="module")
def generated():
    """The extension that writes tables of settings and commands."""
    path = DOCS / "_extensions" / "generated.py"
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("learner", learner_names())
def test_every_setting_has_a_meaning(generated, learner):
    kind = get_learner(learner).settings_type
    settings = [item.name for item in fields(kind)]
    said = generated.meanings(kind)
    assert [name for name in settings if len(said.get(name, "").split()) < 3] == []


def found(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_in_the_reference(package):
    module, there = importlib.import_module(package), [found(path) for path in API]
    public = {name: getattr(module, name) for name in module.__all__}
    public = {name: value for name, value in public.items() if not inspect.ismodule(value)}
    assert [name for name, value in public.items() if not any(value is one for one in there)] == []


def test_every_exception_is_explained():
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert [name for name in errors.__all__ if f"`{name}`" not in page] == []
    assert [code for code in CODES if f"`{code}`" not in page] == []
