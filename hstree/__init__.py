"""Hierarchical-softmax trees: build them, train on them, and find out which one to use."""

from hstree._version import __version__
from hstree.builders import build, builders
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError
from hstree.models.language_model import LanguageModel
from hstree.models.word2vec import Word2Vec
from hstree.tree import Tree, load

__all__ = [
    "Corpus",
    "HstreeError",
    "LanguageModel",
    "Tree",
    "Vocabulary",
    "Word2Vec",
    "WordVectors",
    "__version__",
    "build",
    "builders",
    "load",
]
