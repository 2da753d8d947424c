"""The kinds of models by name, so that a command, a file or a comparison can ask for any."""

from __future__ import annotations

from typing import Any

from hstree.errors import OptionError
from hstree.language_model import LanguageModel
from hstree.tree import Tree
from hstree.treemodel import TreeModel
from hstree.word2vec import Word2Vec

#: The log-bilinear model, and those of word2vec.
KINDS = ("lbl", "cbow", "skipgram")


def new_model(tree: Tree, *, model: str = "lbl", **options: Any) -> TreeModel[Any]:
    """Return an untrained model.

    Parameters
    ----------
    tree : Tree
    model : {"lbl", "cbow", "skipgram"}
    **options
        Those of `LanguageModel` for "lbl", of `Word2Vec` for the others.

    Raises
    ------
    OptionError
        When there is no such model, or an option cannot have its value.
    TypeError
        When it does not have such an option.
    """
    if model not in KINDS:
        raise OptionError(f"model is {model!r}; it must be one of {', '.join(KINDS)}")
    if model == "lbl":
        return LanguageModel(tree, **options)
    return Word2Vec(tree, model="cbow" if model == "cbow" else "skipgram", **options)
