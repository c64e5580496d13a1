"""Sphinx configuration: `make docs` builds the site with warnings as errors."""

import sys
from pathlib import Path

import discreet

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "discreet"
author = "The discreet authors"
copyright = "2026, the discreet authors"
release = discreet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "generated",
    "mathml",
]
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
exclude_patterns = ["_build"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = "discreet"
