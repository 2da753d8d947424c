"""Train gensim's CBOW on its own Huffman tree, on hstree's, and on a tree over learned vectors.

The text is Python's own documentation, which every installation has.

    python examples/gensim_tree.py
"""

import time
from itertools import pairwise

import numpy as np
from gensim.models import Word2Vec

import hstree
from hstree.interop.gensim import layer_of, tree_of, use_tree, vocabulary_of

WINDOW = 5
EPOCHS = 5
LINES = 8_000
HELD_OUT = 500


def main() -> None:
    """Train CBOW on three trees, and print the held-out loss of each."""
    lines = sentences()
    train, held_out = lines[:-HELD_OUT], lines[-HELD_OUT:]
    print(f"{'tree':<16}{'code length':>12}{'seconds':>9}{'held-out nll':>14}")

    first = untrained(train)
    report("gensim's own", first, train, held_out)
    trees = {
        "huffman": hstree.build("huffman", vocabulary_of(first)),
        "gmm": hstree.build("gmm", first.wv),
    }
    for name, tree in trees.items():
        model = untrained(train)
        use_tree(model, tree)
        report(name, model, train, held_out)


def sentences() -> list[list[str]]:
    """Return the built-in text as a list of words per line, the input of gensim."""
    corpus = hstree.Corpus.read("builtin:python", lower=True)
    words = corpus.words(slice(0, int(corpus.line_start[LINES])))
    start = corpus.line_start[: LINES + 1].tolist()
    return [words[a : b - 1] for a, b in pairwise(start)]  # without <eos>


def untrained(train: list[list[str]]) -> Word2Vec:
    """Return an untrained CBOW model with its vocabulary and gensim's Huffman tree."""
    model = Word2Vec(
        hs=1, negative=0, vector_size=50, window=WINDOW, min_count=2, sample=0, workers=1
    )
    model.build_vocab(train)
    return model


def report(name: str, model: Word2Vec, train: list[list[str]], held_out: list[list[str]]) -> None:
    """Train a model in gensim, score held-out words with hstree's layer, and print one line."""
    began = time.perf_counter()
    model.train(train, total_examples=len(train), epochs=EPOCHS)
    seconds = time.perf_counter() - began
    hidden, targets = windows(model, held_out)
    nll = layer_of(model).nll(hidden, targets).mean()
    length = tree_of(model).stats().length_weighted
    print(f"{name:<16}{length:>12.2f}{seconds:>9.2f}{nll:>14.3f}")


def windows(model: Word2Vec, lines: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean context vector of each known word (B, d), and the ids of the words (B,)."""
    vectors = model.wv.vectors
    hidden = []
    targets = []
    for line in lines:
        ids = [model.wv.key_to_index[word] for word in line if word in model.wv.key_to_index]
        for at, word in enumerate(ids):
            around = ids[max(0, at - WINDOW) : at] + ids[at + 1 : at + WINDOW + 1]
            if around:
                hidden.append(vectors[around].mean(axis=0))
                targets.append(word)
    return np.array(hidden), np.array(targets)


if __name__ == "__main__":
    main()
