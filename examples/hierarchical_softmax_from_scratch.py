"""A language model with a hierarchical softmax in one file, in NumPy, with a comment per step.

    python examples/hierarchical_softmax_from_scratch.py             # on Python's documentation
    python examples/hierarchical_softmax_from_scratch.py corpus.txt  # one sentence per line

A softmax over V words computes V scores for the probability of one word. Here the words are the
leaves of a binary tree. Each node decides between its two children by a logistic regression on the
hidden vector. The probability of a word is the product of the probabilities of about log2(V)
decisions, those on the path from the root to the word. The probabilities of all words sum to one.
hstree has the same perplexity with the same options.
"""

import heapq
import sys
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

DIM = 50
CONTEXT = 3
MIN_COUNT = 3
EPOCHS = 3
BATCH = 256
RATE = 0.03
SEED = 0


def main() -> None:
    """Train a model that predicts a word from the three words before it; print perplexities."""
    # One sentence per line, with `<eos>` at its end. The last tenth is the test text.
    text = Path(sys.argv[1]).read_text() if sys.argv[1:] else "\n".join(topics.values())
    lines = [[*line.split(), "<eos>"] for line in text.splitlines()]
    n_test = len(lines) // 10
    train = [word for line in lines[:-n_test] for word in line]
    test = [word for line in lines[-n_test:] for word in line]
    counts = Counter(train)
    # Rare words are replaced by `<unk>`
    frequent = {word: n for word, n in counts.items() if n >= MIN_COUNT or word == "<eos>"}
    frequent["<unk>"] = len(train) - sum(frequent.values())
    words = sorted(frequent, key=lambda word: (-frequent[word], word))
    number = {word: i for i, word in enumerate(words)}

    tree = Huffman([frequent[word] for word in words])
    model = Model(tree, words, np.random.default_rng([SEED, 0]))
    print(f"{len(words):,} words, {len(train):,} tokens, {tree.mean_length:.2f} decisions per word")
    contexts, targets = windows(train, number)
    held_out = windows(test, number)
    print(f"untrained: perplexity {model.perplexity(*held_out):.4f}")
    for epoch in range(1, EPOCHS + 1):
        rng = np.random.default_rng([SEED, 1, epoch])
        order = rng.permutation(len(targets))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            model.step(contexts[batch], targets[batch])
        print(f"epoch {epoch}: perplexity {model.perplexity(*held_out):.4f}")


def windows(tokens: list[str], number: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of the words before each position (T, CONTEXT), and of its word (T,)."""
    ids = [number.get(word, number["<unk>"]) for word in tokens]
    padded = np.array([number["<eos>"]] * CONTEXT + ids)
    rows = np.lib.stride_tricks.sliding_window_view(padded, CONTEXT + 1)
    return rows[:, :-1], rows[:, -1]


class Huffman:
    """Binary tree over words in which frequent words are near the root.

    `path` (V, L) has the nodes on the path to each word. `sign` (V, L) has the branch taken at each
    node: +1 for the first child, -1 for the second, 0 after the end of a shorter path.
    """

    def __init__(self, counts: list[int]) -> None:
        # Join the two items with the smallest counts until one is left. Items 0 to V - 1 are words.
        heap = [(count, item) for item, count in enumerate(counts)]
        heapq.heapify(heap)
        children = []
        weight = []
        while len(heap) > 1:
            light, first = heapq.heappop(heap)
            heavy, second = heapq.heappop(heap)
            heapq.heappush(heap, (light + heavy, len(counts) + len(children)))
            children.append((first, second))
            weight.append((max(light, 0.5), max(heavy, 0.5)))
        # From the root, the last node, down: record the nodes and branches on the path to each item
        paths: dict[int, list[tuple[int, int]]] = {len(counts) + len(children) - 1: []}
        for node in reversed(range(len(children))):
            path = paths.pop(len(counts) + node)
            first, second = children[node]
            paths[first] = [*path, (node, 1)]
            paths[second] = [*path, (node, -1)]
        longest = max(map(len, paths.values()))
        self.path = np.zeros((len(counts), longest), int)
        self.sign = np.zeros((len(counts), longest), np.float32)
        for word, path in paths.items():
            self.path[word, : len(path)] = [node for node, _ in path]
            self.sign[word, : len(path)] = [turn for _, turn in path]
        # Log-odds of the first child. With these biases, an untrained model is the unigram model.
        self.log_odds = np.array([np.log(light / heavy) for light, heavy in weight], np.float32)
        self.mean_length = np.average(np.abs(self.sign).sum(axis=1), weights=counts)


class Model:
    """Log-bilinear model: the hidden vector is a weighted sum of the preceding words' vectors."""

    def __init__(self, tree: Huffman, words: list[str], rng: np.random.Generator) -> None:
        self.tree = tree
        drawn = rng.standard_normal((len(words), DIM), np.float32) * np.float32(0.1)
        self.vector = np.empty_like(drawn)  # (V, DIM) word vectors
        self.vector[np.argsort(words)] = drawn
        self.position = np.ones((CONTEXT, DIM), np.float32)  # weights of the positions
        self.node = np.zeros((len(tree.log_odds), DIM), np.float32)  # a weight vector per node
        self.bias = tree.log_odds.copy()
        parameters = [self.vector, self.position, self.node, self.bias]
        self.squares = {id(array): np.zeros(len(array)) for array in parameters}

    def forward(self, contexts: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return hidden vectors (B, DIM), and scores (B, L) of the branches on the paths."""
        hidden = np.einsum("bnd,nd->bd", self.vector[contexts], self.position)
        path = self.tree.path[targets]
        scores = np.einsum("bd,bld->bl", hidden, self.node[path]) + self.bias[path]
        return hidden, scores * self.tree.sign[targets]

    def perplexity(self, contexts: np.ndarray, targets: np.ndarray) -> float:
        """Return exp of the mean negative log-probability of the targets."""
        nll = 0.0
        for start in range(0, len(targets), 4096):
            batch = slice(start, start + 4096)
            _, scores = self.forward(contexts[batch], targets[batch])
            # -log P(word) = sum over the turns of -log sigmoid(score) = log(1 + exp(-score))
            on_path = self.tree.sign[targets[batch]] != 0
            nll += np.logaddexp(0, -scores.astype(np.float64))[on_path].sum()
        return float(np.exp(nll / len(targets)))

    def step(self, contexts: np.ndarray, targets: np.ndarray) -> None:
        """Update the parameters by the gradient of the summed loss of a batch."""
        hidden, scores = self.forward(contexts, targets)
        path = self.tree.path[targets]
        sign = self.tree.sign[targets]
        # d loss / d score: minus the probability of the other branch; 0 after the end of a path
        error = -sign / (1 + np.exp(scores))
        grad_hidden = np.einsum("bl,bld->bd", error, self.node[path])
        grad_position = np.einsum("bnd,bd->nd", self.vector[contexts], grad_hidden)
        grad_vector = grad_hidden[:, None] * self.position
        self.adagrad(self.node, path[sign != 0], (error[..., None] * hidden[:, None])[sign != 0])
        self.adagrad(self.bias, path[sign != 0], error[sign != 0])
        self.adagrad(self.vector, contexts.ravel(), grad_vector.reshape(-1, DIM))
        self.adagrad(self.position, np.arange(CONTEXT), grad_position)

    def adagrad(self, parameter: np.ndarray, rows: np.ndarray, gradients: np.ndarray) -> None:
        """Sum the gradients of each row, and divide its step by the root of its squared sums."""
        touched, slot = np.unique(rows, return_inverse=True)
        total = np.zeros((len(touched), *gradients.shape[1:]))
        np.add.at(total, slot, gradients)
        squares = self.squares[id(parameter)]
        squares[touched] += (total.reshape(len(total), -1) ** 2).mean(axis=1)
        rate = RATE / np.sqrt(squares[touched] + 1e-10)
        parameter[touched] -= (total.T * rate).T.astype(np.float32)


if __name__ == "__main__":
    main()
