"""Train the same language model on several trees, and print training costs and perplexities.

The text is Python's own documentation, which every installation has. The results are in the folder
`which`; `hstree report which` writes a page with them.

    python examples/compare_trees.py
"""

import hstree

TREES = ["huffman", "huffman arity=4", "classes", "flat"]


def main() -> None:
    """Print one line per candidate, then the best candidate."""
    train, _, _ = hstree.Corpus.read("builtin:python").splits()
    words = train.select_vocabulary(min_count=50)
    text = hstree.Corpus.read("builtin:python", vocabulary=words)
    stop = hstree.Epochs(1)
    comparison = hstree.compare(text, [*TREES, "kn3"], "which", stop=stop, dim=20, context=3)

    print(f"{'candidate':<18}{'scores/target':>14}{'perplexity':>12}{'seconds':>15}")
    for candidate in comparison.candidates:
        # an n-gram model has no tree
        scores = f"{candidate.tree.scores_per_target:.1f}" if candidate.tree else ""
        print(
            f"{candidate.name:<18}{scores:>14}{candidate.test:>12.1f}{candidate.timings.total:>15.2f}"
        )
    print(f"best by validation perplexity: {comparison.choice.chosen}")


if __name__ == "__main__":
    main()
