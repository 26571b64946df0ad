"""Sphinx configuration of the documentation."""

import importlib.util
import sys
from pathlib import Path

import turnout

project = "turnout"
copyright = "the turnout authors"  # noqa: A001
version = release = turnout.__version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "command_line"]
html_theme = "furo"
html_title = f"turnout {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
#: So that lines of 100 characters are seen whole in the column that pages.css makes.
html_theme_options = {"light_css_variables": {"code-font-size": "80%"}}
exclude_patterns = ["_build"]
templates_path = ["_templates"]

autosummary_generate = True
#: Beside the page of ``turnout.Plan``, also where file names do not tell cases apart.
autosummary_filename_map = {"turnout.plan": "turnout.planning.plan"}
autodoc_typehints = "none"
#: Flower's Message API needs Python 3.11; on 3.10 the pages are made without it.
autodoc_mock_imports = [name for name in ("flwr", "jax") if importlib.util.find_spec(name) is None]
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
