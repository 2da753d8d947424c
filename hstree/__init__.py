"""Hierarchical-softmax trees: build them, train on them, and find out which one to use.

Models, experiments and the packages that need them are imported when their names are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hstree._version import __version__
from hstree.builders import build, builders
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError
from hstree.tree import Tree, load

if TYPE_CHECKING:
    from hstree.builders.grow import carried_rows, grow, prune
    from hstree.experiments.bootstrap import bootstrap
    from hstree.experiments.compare import compare, evaluate
    from hstree.experiments.results import Epochs, Halving, Seconds
    from hstree.models.cbow import CBOW
    from hstree.models.ensemble import Ensemble, load_model
    from hstree.models.lbl import LanguageModel
    from hstree.models.skipgram import SkipGram

__all__ = [
    "CBOW",
    "Corpus",
    "Ensemble",
    "Epochs",
    "Halving",
    "HstreeError",
    "LanguageModel",
    "Seconds",
    "SkipGram",
    "Tree",
    "Vocabulary",
    "WordVectors",
    "__version__",
    "bootstrap",
    "build",
    "builders",
    "carried_rows",
    "compare",
    "evaluate",
    "grow",
    "load",
    "load_model",
    "prune",
]

#: Modules of the names that are imported when they are first used.
_LAZY = {
    "bootstrap": "experiments.bootstrap",
    **dict.fromkeys(("carried_rows", "grow", "prune"), "builders.grow"),
    **dict.fromkeys(("compare", "evaluate"), "experiments.compare"),
    **dict.fromkeys(("Epochs", "Halving", "Seconds"), "experiments.results"),
    **dict.fromkeys(("Ensemble", "load_model"), "models.ensemble"),
    "CBOW": "models.cbow",
    "LanguageModel": "models.lbl",
    "SkipGram": "models.skipgram",
}
#: Packages that `import hstree` alone does not import.
_PACKAGES = {
    *("experiments", "formats", "interop", "layers", "metrics", "models", "ngrams", "report"),
    "training",
}


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"hstree.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"hstree.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
