"""Context models with an output layer, one a file; importing the package registers them."""

from hstree.models.base import MODELS, TreeModel, load, new_model
from hstree.models.language_model import LanguageModel
from hstree.models.word2vec import Word2Vec

__all__ = ["MODELS", "LanguageModel", "TreeModel", "Word2Vec", "load", "new_model"]
