"""The kinds of models by name, so that a command, a file or a comparison can ask for any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hstree.errors import OptionError
from hstree.models.base import TreeModel
from hstree.models.language_model import LanguageModel
from hstree.models.word2vec import PREDICTS, Word2Vec
from hstree.tree import Tree

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


def described(options: Mapping[str, Any]) -> tuple[str, str]:
    """Say what a model is and how it is trained, for whoever reads a figure of it.

    Parameters
    ----------
    options : mapping
        As `TreeModel.config` returns them.

    Returns
    -------
    model, budget : str
    """
    numbers = f"{options['dim']} numbers a word"
    batches = f"{options['batch_size']} positions a batch"
    model = options.get("model", "lbl")
    if model == "lbl":
        matrices = "full" if options["full"] else "diagonal"
        return (
            f"log-bilinear, {_several(options['context'], 'word')} of context, {numbers}, "
            f"{matrices} matrices",
            f"{_several(options['epochs'], 'epoch')} at the most, {batches}, Adagrad from "
            f"{options['learning_rate']}, dropout {options['dropout']}, weight decay "
            f"{options['weight_decay']}",
        )
    return (
        f"{model}, {_several(options['window'], 'word')} on either side, {numbers}",
        f"{_several(options['epochs'], 'epoch')}, {batches}, a rate falling from "
        f"{options['learning_rate']}, sub-sampling {options['sample']}",
    )


def predicts(options: Mapping[str, Any]) -> str:
    """Return what the perplexities of a model are of; `options` as for `described`."""
    model = options.get("model", "lbl")
    return LanguageModel.predicts if model == "lbl" else PREDICTS[model]


def _several(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"
