"""Train a language model on a Huffman tree, then score a text, predict, sample, save and load.

The text is Python's own documentation, which every installation has.

    python examples/language_model.py
"""

import hstree

CONTEXT = ["return", "the"]


def main() -> None:
    """Print the perplexity, the most probable next words and a sampled text."""
    train, valid, test = hstree.Corpus.read("builtin:python").splits()
    tree = hstree.build("huffman", train.select_vocabulary(min_count=5))
    model = hstree.LanguageModel(tree, dim=50, context=3, epochs=2).fit(train, valid)

    score = model.score(test)
    print(f"perplexity {score.perplexity:.1f} over {score.tokens:,} tokens")
    for word, probability in model.predict([CONTEXT], k=5)[0]:
        print(f"  {' '.join(CONTEXT)} {word:<12}{probability:.3f}")
    print(" ".join(model.sample(20, CONTEXT, random_state=0)))

    model.save("model")
    again = hstree.load_model("model")
    assert again.perplexity(test) == model.perplexity(test)


if __name__ == "__main__":
    main()
