"""Build trees from your own word vectors, and print their codes.

The vectors in this example are drawn around three topics, so that words of a topic are neighbours.

    python examples/own_vectors.py
"""

import numpy as np

import hstree
from hstree.tree.bit_paths import paths_of

TOPICS = {
    "animals": ["cat", "dog", "horse", "mouse"],
    "colours": ["red", "green", "blue", "yellow"],
    "numbers": ["one", "two", "three", "four"],
}


def main() -> None:
    """Print the code of each word in two trees over the same vectors."""
    words = [word for topic in TOPICS.values() for word in topic]
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(len(TOPICS), 20))
    # (12, 20) vector of each word: the centre of its topic plus noise
    matrix = np.repeat(centres, 4, axis=0) + 0.1 * rng.normal(size=(len(words), 20))
    vectors = hstree.WordVectors(words, matrix, counts=range(len(words), 0, -1))

    trees = {
        "gmm": hstree.build("gmm", vectors),
        "semantic": hstree.build("semantic", vectors),  # with the code lengths of Huffman
    }
    print(f"{'word':<10}" + "".join(f"{name:<12}" for name in trees))
    codes = [paths_of(tree).strings for tree in trees.values()]
    for i, word in enumerate(words):
        print(f"{word:<10}" + "".join(f"{strings[i]:<12}" for strings in codes))
    for name, tree in trees.items():
        print(f"{name}: {tree.stats().length_weighted:.2f} decisions per occurrence")
    trees["gmm"].save("own_vectors.json")


if __name__ == "__main__":
    main()
