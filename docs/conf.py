"""Sphinx settings: `make docs`."""

import re
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils.nodes import SkipNode, Text, literal, literal_block, raw
from latex2mathml.converter import convert

project = "slimsvm"
author = "the slimsvm developers"
release = version = installed_version("slimsvm")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "report/report.md",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "gallery/**/*.json",
    "gallery/**/*.zip",
]
suppress_warnings = ["config.cache"]  # the gallery's settings have a function
templates_path = ["templates"]  # the page of a public name, which the API reference makes in docs/api
html_theme = "furo"
html_title = "slimsvm"
smartquotes_action = "D"  # dashes alone: gamma="learn" stands in tables and docstrings, and is copied from there
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["wide.css"]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

default_role = "py:obj"  # `SVC` in a docstring is a link
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
# Attributes that are properties, too, have one place, and all keep the "_" at the end of their names.
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False

html_math_renderer = "mathml"

SECTIONS = (
    "first_steps",
    "small_models",
    "kernels_and_losses",
    "probabilities",
    "labels",
    "structures",
    "large",
    "shipping",
)


def colours_of_plots(gallery_conf, fname):
    """Every example is drawn in the colours of the library's own plots, which colour-blind people can tell apart."""
    import matplotlib.pyplot as plt
    from cycler import cycler

    from slimsvm.plots.drawing import PALETTE

    plt.rcdefaults()
    plt.rcParams["axes.prop_cycle"] = cycler(color=PALETTE)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "run_stale_examples": True,  # an example whose text is as before may have another picture: the library has changed
    "abort_on_example_error": True,
    "reset_modules": (colours_of_plots,),
    "doc_module": ("slimsvm",),
    "backreferences_dir": "gallery/used_in",
    "reference_url": {"slimsvm": None},
    "capture_repr": (),
    "min_reported_time": 1000,  # no times: they are those of whichever machine built the pages
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "copyfile_regex": "",
}


def _visit_math(translator, node):
    """Formulas are written as MathML, which browsers show by themselves: pages need no network."""
    display = "block" if node.tagname == "math_block" else "inline"
    translator.body.append(convert(node.astext(), display=display))
    raise SkipNode


def _skip(app, what, name, member, skip, options):
    """Methods that scikit-learn describes are left to its own pages."""
    function = getattr(member, "fget", member)
    return skip or name.endswith("_request") or str(getattr(function, "__module__", "")).startswith("sklearn")


def _used_in(app, what, name, member, options, lines):
    """A class or function ends with the examples that use it."""
    if what not in ("class", "function"):
        return
    found = Path(app.srcdir) / "gallery" / "used_in"
    names = [name, f"{name}.from_estimator", f"{name}.from_explanation"]
    files = {each: found / f"{each}.examples" for each in names}
    used = [each for each, file in files.items() if file.exists() and file.stat().st_size]
    if used:
        lines += ["", f".. minigallery:: {' '.join(used)}", "   :add-heading: Used in", "   :heading-level: ^", ""]


def _keep_units(app, doctree, docname):
    """A number and its unit stand on one line."""
    for text in list(doctree.findall(Text)):
        kept = re.sub(r"(?<=\d) (?=%|(?:s|ms|µs|kB|MB)\b)", "\N{NO-BREAK SPACE}", text)
        if kept != text and not isinstance(text.parent, (literal, literal_block, raw)):
            text.parent.replace(text, Text(kept))


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _used_in)
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-resolved", _keep_units)
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
