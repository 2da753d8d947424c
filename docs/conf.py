"""Settings of Sphinx: the pages of this folder, and the reference of the public names."""

import inspect
import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib
from docutils import nodes
from numpy.typing import ArrayLike
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_toc
from sphinx.util.typing import stringify_annotation

import hstree

project = "hstree"
author = "The hstree developers"
release = hstree.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # it would make dashes of the hyphens of options
suppress_warnings = [
    "ref.footnote",  # numpydoc's references need not be cited in the text
    "toc.not_included",  # pages of results and public names are not in the sidebar
]

html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
html_title = f"hstree {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static/scorer.js")
html_show_copyright = False
copybutton_prompt_text = ">>> "
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"  # no button for outputs

myst_heading_anchors = 3  # links to headings, as forges make them

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    # Members of these classes of other packages, and of their bases, are left out.
    "inherited-members": "BaseEstimator, BaseException, ClassifierMixin, Module, Struct, tuple",
    # Methods that scikit-learn adds to each estimator.
    "exclude-members": "get_metadata_routing, "
    + ", ".join(
        f"set_{method}_request"
        for method in ("fit", "partial_fit", "predict", "predict_proba", "score")
    ),
}
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


#: The names that api.md lists, by the full names of their objects (`hstree.LanguageModel` for
#: `hstree.models.lbl.LanguageModel`) and, of classes, by the names that docstrings use.
public_names: dict[str, str] = {}
reference = (Path(__file__).parent / "api.md").read_text(encoding="utf-8")
for module, name in re.findall(r"^   (hstree[\w.]*)\.(\w+)$", reference, re.M):
    value = getattr(import_module(module), name)
    public_names[f"{value.__module__}.{value.__qualname__}"] = f"{module}.{name}"
    if inspect.isclass(value):
        public_names[name] = f"{module}.{name}"
shutil.rmtree(Path(__file__).parent / "api", ignore_errors=True)  # pages of names that moved


def use_public_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link the names of docstrings and type hints, such as `Tree.stats`, to their public names."""
    for node in doctree.findall(pending_xref):
        if node.get("refdomain") != "py":
            continue
        node.attributes.pop("refspecific", None)  # the word "optional" is no attribute of a class
        target = node["reftarget"]
        name, dot, member = target.partition(".")
        if target in public_names:
            node["reftarget"] = public_names[target]
        elif name in public_names:
            node["reftarget"] = public_names[name] + dot + member


def leave_out_of_sidebar(app: Sphinx, doctree: nodes.document) -> None:
    """Leave the pages of public names out of the sidebar, which is a part of every page."""
    for node in list(doctree.findall(autosummary_toc)):
        node.parent.remove(node)


def shorten_types(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str, Any] | None:
    """Write types without ranges and modules, and those of arrays by their short names."""
    if signature is None:
        return None
    types = re.sub(r"Annotated\[([^,\[\]]+), [\w.~]+\([^()]*\)\]", r"\1", signature)
    types = types.replace(stringify_annotation(ArrayLike, "smart"), "ArrayLike")
    types = re.sub(r"~numpy\.ndarray\[[^]]*\], ~numpy\.dtype(\[[^]]*\])\]", r"NDArray\1", types)
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
    text = hstree.Corpus.read("builtin:python").select_lines(0, 5000)
    words = text.splits()[0].select_vocabulary(min_count=10)
    axes = hstree.build("huffman", words).plot(max_depth=8)
    axes.figure.savefig(Path(__file__).parent / "_static" / "tree.svg", bbox_inches="tight")


def setup(app: Sphinx) -> None:
    """Register the handlers."""
    app.connect("builder-inited", draw_tree)
    app.connect("autodoc-process-docstring", name_references)
    app.connect("autodoc-process-signature", shorten_types)
    app.connect("autodoc-skip-member", is_left_out)
    app.connect("doctree-read", use_dashes)
    app.connect("doctree-read", use_public_names)
    app.connect("doctree-read", leave_out_of_sidebar, priority=0)  # before toctrees are collected
    app.connect("include-read", link_from_docs)
