"""Configuration of the documentation: `make docs` builds it offline, with warnings as errors."""

import sys
from pathlib import Path

import skdp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "skdp"
author = "skdp developers"
copyright = author
version = release = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "mathtext",
    "docstrings",
    "guarantees",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"

# References into our own package must resolve; other projects are named, not linked.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!skdp\b).*")]

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

plot_include_source = True
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 120)]

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(demo|adult)\.py$",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("skdp",),
    "reference_url": {"skdp": None},
    "backreferences_dir": "generated/backreferences",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    # The page of running times would load scripts from elsewhere.
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "skdp"
html_math_renderer = "mathtext"
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_show_sourcelink = False
# Only the reference and the gallery have pages below them to navigate.
html_sidebars = {page.stem: [] for page in HERE.glob("*.rst") if page.stem != "api"}
html_theme_options = {
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
}
