"""Settings of Sphinx: the pages of this folder, and the reference of all public modules."""

import inspect
import re
import shutil
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import matplotlib
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

import hstree
from hstree import _arrays

project = "hstree"
author = "The hstree developers"
release = hstree.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # it would make dashes of the hyphens of options
suppress_warnings = [
    "ref.footnote",  # numpydoc's references need not be cited in the text
    "ref.python",  # the type of a parameter may be a word that several classes have as attribute
]

html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
html_title = f"hstree {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static/scorer.js")
html_show_copyright = False

myst_heading_anchors = 3  # links to headings, as forges make them

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    # Methods that scikit-learn adds to each estimator.
    "exclude-members": ", ".join(
        f"set_{method}_request"
        for method in ("fit", "partial_fit", "predict", "predict_proba", "score")
    ),
}
autodoc_type_aliases = {name: name for name in ("ArrayLike", *vars(_arrays)) if name[0].isupper()}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # type: ignore[method-assign]
autodoc_typehints_format = "short"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
add_module_names = False
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"


def link_from_docs(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Change the links of an included file of the root folder to links from this folder."""

    def target(link: re.Match[str]) -> str:
        name = link[1].removeprefix("docs/")
        return f"]({name if name != link[1] else f'../{name}'}"

    content[0] = re.sub(r"\]\(([\w-][\w./-]*)(?!:)", target, content[0])


def defined_in(value: object) -> str:
    """Return the full name under which a public object is documented: where it is defined."""
    return f"{value.__module__}.{value.__qualname__}"


def reexported(package: str) -> list[str]:
    """Return the full names of the objects that a package offers under shorter names."""
    module = import_module(package)
    names = [name for name in dir(module) if not name.startswith("_")]  # of hstree, the public ones
    names = getattr(module, "__all__", names if package == "hstree" else ())
    values = [getattr(module, name) for name in names]
    return [
        defined_in(value)
        for value in values
        if (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__ != package
    ]


shutil.rmtree(Path(__file__).parent / "api", ignore_errors=True)  # pages of modules that moved
packages = [module.name for module in walk_packages(hstree.__path__, "hstree.") if module.ispkg]
autosummary_context = {"reexported": {name: reexported(name) for name in ["hstree", *packages]}}
# The package, not the function of the same name that `hstree` offers.
hstree.builders = import_module("hstree.builders")


def use_full_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link names as the module of the docstring knows them: `Tree` where it imports that."""
    for node in doctree.findall(pending_xref):
        module, target = node.get("py:module"), node["reftarget"]
        if node.get("refdomain") != "py" or module is None:
            continue
        with suppress(AttributeError):
            value = attrgetter(target)(import_module(module))
            if not hasattr(value, "__qualname__"):
                continue
            of_class = getattr(import_module(module), node.get("py:class") or "", None)
            if not hasattr(of_class, target):
                node["reftarget"] = defined_in(value)


def leave_out_ranges(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str, Any] | None:
    """Write the types of options without their ranges, and names without their modules."""
    if signature is None:
        return None
    types = re.sub(r"Annotated\[([^,\[\]]+), [\w.~]+\([^()]*\)\]", r"\1", signature)
    types = re.sub(r"dataclasses\.InitVar\[([^\[\]]+)\]", r"\1", types)
    return re.sub(r"(?<![\w.~])hstree\.", "~hstree.", types), returns


def name_references(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Give the references of each docstring names of their own: a page has several docstrings."""
    lines[:] = [re.sub(r"(?<!\w)\[(\d+)\](?=_| )", rf"[#{name}-\1]", line) for line in lines]


def is_left_out(
    app: Sphinx, kind: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out the fields of named tuples: their class describes them."""
    return True if (getattr(value, "__doc__", None) or "").startswith("Alias for field") else None


def use_dashes(app: Sphinx, doctree: nodes.document) -> None:
    """Part parameters from their descriptions by a dash, as the switched off smart quotes would."""
    for fields in doctree.findall(nodes.field_list):
        for text in list(fields.findall(nodes.Text)):
            if text == " -- ":
                text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def draw_tree(app: Sphinx) -> None:
    """Draw the tree of the tutorial."""
    matplotlib.use("Agg")
    words = hstree.Corpus.read("builtin:python").splits()[0].select_vocabulary(min_count=10)
    axes = hstree.build("huffman", words).plot(max_depth=8)
    axes.figure.savefig(Path(__file__).parent / "_static" / "tree.svg", bbox_inches="tight")


def setup(app: Sphinx) -> None:
    """Register the handlers."""
    app.connect("builder-inited", draw_tree)
    app.connect("autodoc-process-docstring", name_references)
    app.connect("autodoc-process-signature", leave_out_ranges)
    app.connect("autodoc-skip-member", is_left_out)
    app.connect("doctree-read", use_dashes)
    app.connect("doctree-read", use_full_names)
    app.connect("include-read", link_from_docs)
