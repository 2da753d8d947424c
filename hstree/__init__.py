"""Hierarchical-softmax trees: build them, train on them, and find out which one to use."""

from hstree.builders import build, builders
from hstree.corpus import Corpus
from hstree.errors import HstreeError
from hstree.language_model import LanguageModel
from hstree.tree import Tree
from hstree.treefile import load
from hstree.vectors import WordVectors
from hstree.version import __version__
from hstree.vocabulary import Vocabulary
from hstree.word2vec import Word2Vec

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
