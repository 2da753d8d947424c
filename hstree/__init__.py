"""Hierarchical-softmax trees: build them, train on them, and find out which one to use."""

from hstree._version import __version__
from hstree.builders import build, builders
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError
from hstree.models.cbow import CBOW
from hstree.models.lbl import LanguageModel
from hstree.models.skipgram import SkipGram
from hstree.tree import Tree, load

__all__ = [
    "CBOW",
    "Corpus",
    "HstreeError",
    "LanguageModel",
    "SkipGram",
    "Tree",
    "Vocabulary",
    "WordVectors",
    "__version__",
    "build",
    "builders",
    "load",
]
