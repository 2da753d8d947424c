"""Models whose tree grows by the words of more text, beside a new tree from the start.

The Penn Treebank's training text in two parts. A model over the tree of the first part's words is
trained on that part. Then the tree grows by the words of the whole text (`hstree.grow`: huffman by
their counts, gmm by vectors that a random tree's model learns in one epoch), and the model
continues for an epoch on the whole text. It is compared with two others: a new
Huffman tree that takes the old rows in the order of the merges, as in gensim's
``build_vocab(update=True)``; and a new model, trained from the start for as many epochs. Test
perplexities of one random state: over all tokens, those whose word the first part has, and the
others. Before it grows, a model maps the others to <unk>, and has no perplexity of them.

    python -m benchmarks.grow [--shares 0.5 0.1] [--epochs 5] [--ptb DIR] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import hstree
from benchmarks import common
from benchmarks.texts import add_ptb, ptb_splits
from hstree import progress
from hstree._text import plural
from hstree.data.splits import Splits


def main() -> None:
    command = common.parser(__doc__)
    command.add_argument("--shares", type=float, nargs="+", default=[0.5, 0.1])
    command.add_argument("--methods", nargs="+", default=["huffman", "gmm"])
    command.add_argument("--epochs", type=int, default=5)
    command.add_argument("--dim", type=int, default=100)
    add_ptb(command)
    options = command.parse_args()
    progress.enable()
    splits = ptb_splits(options.ptb)
    common.report("grow", rows(splits, options), options.json)


def rows(splits: Splits, options: Any) -> Iterator[dict[str, Any]]:
    """Measure each method at each size of the first part, a fraction of the lines."""
    for method in options.methods:
        whole = tree_input(method, splits.train, options.dim)
        tree = hstree.build(method, whole)
        from_start = {
            f"new tree, {plural(epochs, 'epoch')}": hstree.LanguageModel(
                tree, dim=options.dim, epochs=epochs
            ).fit(splits.train, splits.valid)
            for epochs in (1, options.epochs + 1)
        }
        for share in options.shares:
            part = splits.train.select_lines(0, int(share * splits.train.n_lines))
            part = part.with_vocabulary(part.select_vocabulary(min_count=1))
            first = {"first part": f"{share:.0%}", "tree": method}
            for row in grown(method, part, whole, splits, options):
                yield first | row
            for name, new in from_start.items():
                yield first | figures(name, new, part, splits.test)


def tree_input(method: str, text: hstree.Corpus, dim: int) -> Any:
    """Return the input of a builder and of `hstree.grow`: counts of words, or their vectors."""
    if method == "huffman":
        return text.counted_vocabulary()
    random = hstree.LanguageModel(hstree.build("random", text), dim=dim, epochs=1)
    return random.fit(text).mean_predicted_vectors(text)


def grown(
    method: str, part: hstree.Corpus, whole: Any, splits: Splits, options: Any
) -> Iterator[dict[str, Any]]:
    """Train on the first part, grow by the whole text, and continue."""
    tree = hstree.build(method, tree_input(method, part, options.dim))
    model = hstree.LanguageModel(tree, dim=options.dim, epochs=options.epochs)
    model.fit(part, splits.valid)
    yield figures(f"before, {plural(options.epochs, 'epoch')}", model, part, splits.test)
    after = {"grown": model.grow(hstree.grow(tree, whole), epochs=1)}
    if method == "huffman":
        after["old rows, new tree"] = old_rows_in_a_new_tree(model, hstree.build(method, whole))
    for name, continued in after.items():
        yield figures(name, continued, part, splits.test)
        continued.fit(splits.train, splits.valid, warm_start=continued)
        yield figures(f"{name}, 1 epoch more", continued, part, splits.test)


def old_rows_in_a_new_tree(model: hstree.LanguageModel, tree: hstree.Tree) -> hstree.LanguageModel:
    """Return a model over a new Huffman tree whose merges have the rows of the old tree's.

    Nodes are numbered from the last merge to the first.
    """
    new = hstree.LanguageModel(tree, dim=model.dim, epochs=1)
    vocabulary = {word: i for i, word in enumerate(tree.labels)}
    there = [vocabulary[word] for word in model.spec.labels]
    new.context_model.embedding[there] = model.context_model.embedding
    new.context_model.position[:] = model.context_model.position
    gained = tree.n_nodes - model.spec.source.n_nodes
    for name, array in model.layer.parameters().items():
        new.layer.parameters()[name][gained:] = array
    return new


def figures(
    name: str, model: hstree.LanguageModel, part: hstree.Corpus, test: hstree.Corpus
) -> dict[str, Any]:
    """Return the row of a model: perplexities over all test tokens, old words and new ones."""
    nll = model.nll(test)
    is_old = ~test.with_vocabulary(part.vocabulary).is_oov()
    knows_new = model.spec.vocabulary.sha256 != part.vocabulary.sha256
    return {
        "model": name,
        "words": len(model.spec.labels),
        "code length": model.tree.stats().length_weighted,
        "perplexity": float(np.exp(nll.mean())) if knows_new else None,
        "of old words": float(np.exp(nll[is_old].mean())),
        "of new words": float(np.exp(nll[~is_old].mean())) if knows_new else None,
    }


if __name__ == "__main__":
    main()
