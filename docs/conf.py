"""Sphinx settings: `make docs`."""

from importlib.metadata import version as installed_version

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

project = "slimsvm"
author = "the slimsvm developers"
release = version = installed_version("slimsvm")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "slimsvm"

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes that are properties, too, have one place
napoleon_use_rtype = False

html_math_renderer = "mathml"


def _visit_math(translator, node):
    """Formulas are written as MathML, which browsers show by themselves: pages need no network."""
    display = "block" if node.tagname == "math_block" else "inline"
    translator.body.append(convert(node.astext(), display=display))
    raise SkipNode


def _skip(app, what, name, member, skip, options):
    """Methods that scikit-learn describes are left to its own pages."""
    function = getattr(member, "fget", member)
    return skip or name.endswith("_request") or str(getattr(function, "__module__", "")).startswith("sklearn")


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", _skip)
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
