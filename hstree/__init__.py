"""Trees for hierarchical softmax, and comparisons of output layers.

Build a tree from counts, vectors or a text::

    tree = hstree.build("huffman", counts)     dict, Series, array or list
    tree = hstree.build("gmm", X, labels=names, counts=counts)
                                               array, tensor or DataFrame
    hstree.builders()                          all methods, by name
    "cat" in tree, len(tree), tree.labels, tree.stats(), tree.plot()
    tree.code("cat"), tree.neighbours("cat")
    tree.save("tree.json"), hstree.load("tree.json")
    hstree.grow(tree, new), hstree.prune(tree, words), hstree.carried_rows

Train a model with a tree; compare trees and other output layers::

    model = hstree.LanguageModel(tree).fit(text)
                                               CBOW, SkipGram, Ensemble
    model.perplexity(text), model.predict(["the cat"])
    model.save("model"), hstree.load_model("model")
    hstree.evaluate("huffman", text)           one candidate
    hstree.compare(text, ["huffman", "gmm", "flat"], "folder")
                                               stop= Halving(minutes),
                                               Epochs(n) or Seconds(n)
    hstree.bootstrap(text, "folder")           trees from learned vectors
    hstree.compare_models(a, b, text)          ratio with its 95% interval

A text is a list of lines or of lists of words, an array of token ids, the
name of a file, or a Corpus, which reads all of these with options::

    hstree.Corpus       read, from_lines, from_tokens, from_ids, splits
    hstree.Vocabulary   words with counts
    hstree.WordVectors  words with vectors and counts

Packages: interop (scikit-learn, PyTorch, gensim), formats (trees of other
programs), layers, ngrams, and others below. All errors are HstreeErrors.
See also `help(hstree.build)`, `help(hstree.Tree)` and so on.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hstree._version import __version__ as __version__
from hstree.builders import build as build
from hstree.builders import builders as builders
from hstree.data.corpus import Corpus as Corpus
from hstree.data.vectors import WordVectors as WordVectors
from hstree.data.vocabulary import Vocabulary as Vocabulary
from hstree.errors import HstreeError as HstreeError
from hstree.tree import Tree as Tree
from hstree.tree import load as load

if TYPE_CHECKING:
    from hstree.builders.carried_rows import carried_rows as carried_rows
    from hstree.builders.grow import grow as grow
    from hstree.builders.prune import prune as prune
    from hstree.experiments.bootstrap import bootstrap as bootstrap
    from hstree.experiments.compare import compare as compare
    from hstree.experiments.compare import compare_models as compare_models
    from hstree.experiments.compare import evaluate as evaluate
    from hstree.experiments.results import Epochs as Epochs
    from hstree.experiments.results import Halving as Halving
    from hstree.experiments.results import Seconds as Seconds
    from hstree.models.cbow import CBOW as CBOW
    from hstree.models.ensemble import Ensemble as Ensemble
    from hstree.models.lbl import LanguageModel as LanguageModel
    from hstree.models.registry import load_model as load_model
    from hstree.models.skipgram import SkipGram as SkipGram

# No `__all__`: `help(hstree)` would print the whole help of every name in it, 2,000 lines.
_EAGER = {
    "Corpus",
    "HstreeError",
    "Tree",
    "Vocabulary",
    "WordVectors",
    "build",
    "builders",
    "load",
}
#: Modules of the names that are imported when they are used for the first time.
_LAZY = {
    "bootstrap": "experiments.bootstrap",
    "carried_rows": "builders.carried_rows",
    "grow": "builders.grow",
    "prune": "builders.prune",
    **dict.fromkeys(("compare", "compare_models", "evaluate"), "experiments.compare"),
    **dict.fromkeys(("Epochs", "Halving", "Seconds"), "experiments.results"),
    "Ensemble": "models.ensemble",
    "load_model": "models.registry",
    "CBOW": "models.cbow",
    "LanguageModel": "models.lbl",
    "SkipGram": "models.skipgram",
}
#: Packages that `import hstree` does not import.
_PACKAGES = {
    "experiments",
    "formats",
    "interop",
    "layers",
    "metrics",
    "models",
    "ngrams",
    "report",
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
    return sorted({*_EAGER, *_LAZY, *(name for name in globals() if name.startswith("__"))})
