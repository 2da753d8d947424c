"""Build trees by several methods, train the same model on each, and print what they cost and buy.

The text is the docstrings of networkx, which every installation has.

    python examples/compare_trees.py
"""

import time

import hstree

TREES = {
    "random": ("random", {}),
    "huffman": ("huffman", {}),
    "huffman, arity 4": ("huffman", {"arity": 4}),
    "classes": ("classes", {}),
    "flat": ("flat", {}),
}


def main() -> None:
    """Print a row per tree."""
    train, valid, test = hstree.Corpus.read("builtin:networkx").splits()
    train = train.with_vocabulary(train.select_vocabulary(min_count=10))
    print(f"{'tree':<18}{'scores/target':>14}{'perplexity':>12}{'seconds':>9}")
    for name, (method, options) in TREES.items():
        tree = hstree.build(method, train, **options)
        began = time.perf_counter()
        model = hstree.LanguageModel(tree, dim=32, context=3, epochs=1).fit(train, valid)
        seconds = time.perf_counter() - began
        scores = tree.stats().scores_per_target
        print(f"{name:<18}{scores:>14.1f}{model.perplexity(test):>12.1f}{seconds:>9.1f}")


if __name__ == "__main__":
    main()
