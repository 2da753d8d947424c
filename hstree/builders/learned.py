"""A trained model's tree, its words assigned anew by the model's own likelihood.

The shape of the tree and the weights of its nodes stay; words change their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import scipy.optimize
import scipy.sparse
from safetensors import SafetensorError, safe_open

from hstree import progress
from hstree._files import current_file, reading
from hstree._options import Range, checked_options
from hstree._ragged import offsets, segment_ids
from hstree._text import one_line
from hstree._typing import Array, Float64, Int64
from hstree.data.vectors import WordVectors
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.tree import Tree, load
from hstree.tree.arrays import Level

#: Tensors of a model over a tree: of its weight rows and of their biases.
ROWS, BIASES = "node_weight", "node_bias"
#: Children of a wide node that a word may go to: the best ones, and the one that it is below.
CANDIDATES = 16


@checked_options
def learned(
    vectors: WordVectors, *, model: Path | None = None, price: Annotated[float, Range(0)] = 0.0
) -> Tree:
    """Assign the words of a trained model's tree anew, by the model's own likelihood.

    Parameters
    ----------
    vectors : WordVectors
        Mean predicted vectors of the model, and counts.
    model : Path
        Folder of the model, which is over a tree with one code per label.
    price : float
        Nats that a score of a target costs: frequent words go to where fewer scores follow.

    Returns
    -------
    Tree
        The same nodes, in which other words have the places. A leaf of a node with more than two
        children keeps its word, whose weights these are, unless the word went elsewhere above.

    Raises
    ------
    OptionError
        When no model is named.
    InputError
        When the tree gives several codes to a label, or the vectors are of other words, of another
        length, or without counts.
    FileFormatError
        When the folder has no model over a tree.

    Notes
    -----
    Let h be the hidden vector of a token, and q, b the weights and the bias of a binary node. The
    log-probabilities of its two branches differ by q . h + b, so that at fixed hidden vectors a
    word y that goes to the first branch instead of the second gains exactly n_y (q . m_y + b), with
    n_y its count and m_y its mean predicted vector. At a node of more children, those of two
    branches differ by the difference of their scores: their normaliser is the same.

    From the root down, each node divides the words that reached it, as many to each child as there
    are leaves below it, such that the sum of these gains is the largest: at a binary node by a
    sort, at others by a linear program, over the `CANDIDATES` best children of each word. What the
    nodes below can make of the words is not foreseen, but for its price. On the Penn Treebank the
    trees of `gmm` became worse by this, by 1% in perplexity (``docs/results.md``).

    O(V d) per level, and a sort; a program of 100,000 words and 300 children takes minutes.
    """
    if model is None:
        raise OptionError.about("model", "is needed: the folder of a trained model")
    if vectors.counts is None:
        raise InputError(
            "learned needs counts, and these vectors have none; save them with the model, so that "
            "they have the counts of its text"
        )
    tree, weight, bias = _read(model)
    order = _order_of(tree, vectors)
    counts, X = vectors.counts[order].astype(np.float64), vectors.vectors[order]
    if X.shape[1] != weight.shape[1]:
        raise InputError(
            f"the vectors have {X.shape[1]} numbers, and the hidden vectors of {model} "
            f"{weight.shape[1]}; give the mean predicted vectors of this model"
        )
    child = Places.of(tree, X, counts, weight, bias, price=price).assigned()
    is_leaf = tree.child < 0
    moved = ~tree.child[is_leaf & (child != tree.child)]
    share = counts[moved].sum() / max(counts.sum(), 1.0)
    meta = {"moved": {"words": len(moved), "share_of_tokens": round(float(share), 4)}}
    return Tree(tree.labels, tree.child_start, child, counts=vectors.counts[order], meta=meta)


@dataclass(frozen=True)
class Places:
    """The places of a tree, and what each word gains from going below an edge (`learned`)."""

    tree: Tree
    size: Int64  #: (E,) leaves below each edge
    cost: Float64  #: (E,) what a token of a word that goes there pays for the scores after it
    X: Array  #: (V, d) mean predicted vectors
    counts: Float64  #: (V,)
    weight: Array  #: (R, d)
    bias: Array  #: (R,)
    first: Int64  #: (E,) the first position below each edge, of the leaves from left to right
    leaf: Int64  #: (V,) the edge that leads to each word
    is_greedy: bool = False  #: whether nodes of more than two children divide by `greedily`

    def assigned(self) -> Int64:
        """Return the children (E,) of the nodes, all words assigned anew from the root down."""
        # Words in the order of the places that they have: from node to node of a level
        words, child = np.arange(self.tree.n_labels), self.tree.child.copy()
        with progress.task("learned", len(self.tree.levels), "levels") as task:
            for level in self.tree.levels:
                words = self.divide(level, words, child)
                task.advance()
        return child

    @classmethod
    def of(
        cls,
        tree: Tree,
        X: Array,
        counts: Float64,
        weight: Array,
        bias: Array,
        *,
        price: float = 0.0,
        is_greedy: bool = False,
    ) -> Self:
        """Return the places of a tree; the fields say what is given."""
        size = tree.sum_up(np.ones(tree.n_labels, np.int64))
        # (E,) mean over the leaves below each edge of the scores on the way from it
        scores = np.where(tree.fan_out == 2, 1, tree.fan_out).astype(np.float64)
        after = np.zeros(len(tree.child))
        for level in reversed(tree.levels[1:]):
            total = (size * after)[level.edge_index]
            below = np.add.reduceat(total, level.edge_start[:-1])
            edge = tree.node_edge[level.nodes]
            after[edge] = scores[level.nodes] + below / size[edge]
        before = offsets(size)[:-1]
        first = before - before[tree.child_start[tree.edge_node]]
        tree.sum_down(first)
        to_leaf = np.flatnonzero(tree.child < 0)
        leaf = np.empty(tree.n_labels, np.int64)
        leaf[~tree.child[to_leaf]] = to_leaf
        return cls(tree, size, price * after, X, counts, weight, bias, first, leaf, is_greedy)

    def divide(self, level: Level, words: Int64, child: Int64) -> Int64:
        """Divide the words of the nodes of a level; write those at leaves to `child` (E,).

        `words` are those of the first node, then those of the second, and so on. Returns those of
        the next level.
        """
        tree, edges = self.tree, level.edges
        size = np.add.reduceat(self.size[edges], level.edge_start[:-1])
        start = offsets(size)
        # (words,) which edge of its node each word takes
        branch = np.zeros(len(words), np.int64)
        fan_out = tree.fan_out[level.nodes]
        node = segment_ids(start)  # (words,) its number in the level
        binary = np.flatnonzero(fan_out[node] == 2)
        branch[binary] = self._second(level.nodes[node[binary]], words[binary])
        for n in np.flatnonzero(fan_out > 2).tolist():
            here = slice(start[n], start[n + 1])
            branch[here] = self._assigned(int(level.nodes[n]), words[here])
        words = words[np.lexsort((branch, node))]
        # (words,) the edge that each word took, in their order
        edge = np.repeat(edges, self.size[edges])
        at_leaf = tree.child[edge] < 0
        child[edge[at_leaf]] = ~words[at_leaf]
        return words[~at_leaf]

    def _second(self, node: Int64, words: Int64) -> Int64:
        """Return 1 for words (n,) of binary nodes (n,) that go to the second child, else 0."""
        first = self.tree.child_start[node]
        row = self.tree.row_start[node]
        gain = np.vecdot(self.weight[row], self.X[words]).astype(np.float64) + self.bias[row]
        gain += self.cost[first + 1] - self.cost[first]
        gain *= self.counts[words]
        by_gain = np.lexsort((-gain, node))
        place = np.empty(len(words), np.int64)
        place[by_gain] = np.arange(len(words)) - np.searchsorted(node[by_gain], node[by_gain])
        return (place >= self.size[first]).astype(np.int64)

    def _assigned(self, node: int, words: Int64) -> Int64:
        """Return the branch (n,) of each word of a node with more than two children."""
        tree = self.tree
        edges = np.arange(tree.child_start[node], tree.child_start[node + 1])
        is_leaf, room = tree.child[edges] < 0, self.size[edges].copy()
        # Leaves keep their words, whose weights theirs are
        leaf = self.leaf[words]
        branch = np.where(tree.edge_node[leaf] == node, tree.edge_branch[leaf], -1)
        room[branch[branch >= 0]] = 0
        free = np.flatnonzero(is_leaf & (room > 0))
        others, inner = np.flatnonzero(branch < 0), np.flatnonzero(~is_leaf)
        if not inner.size:
            branch[others] = free
            return branch
        row = tree.row_start[node] + inner
        gain = (self.X[words[others]] @ self.weight[row].T).astype(np.float64)
        gain += self.bias[row] - self.cost[edges[inner]]
        # A leaf that lost its word is worth as little as the worst child
        gain = np.hstack([gain, gain.min(axis=1, keepdims=True)])
        gain *= self.counts[words[others], None]
        room = np.append(room[inner], len(free))
        if self.is_greedy:
            child = greedily(gain, room)
        else:
            child = assigned(gain, room, self._present(leaf[others], edges[inner], room))
        branch[others] = np.append(inner, -1)[child]
        branch[branch < 0] = free
        return branch

    def _present(self, leaf: Int64, edges: Int64, room: Int64) -> Int64:
        """Return the child (n,) that each leaf is below; words from elsewhere find room."""
        position = self.first[leaf]
        present = np.searchsorted(self.first[edges], position, "right") - 1
        is_below = position < (self.first + self.size)[edges[present]]
        present[(present < 0) | ~is_below] = -1
        taken = np.bincount(present[present >= 0], minlength=len(room))
        present[present < 0] = np.repeat(np.arange(len(room)), room - taken)
        return present


def assigned(gain: Float64, room: Int64, present: Int64, candidates: int = CANDIDATES) -> Int64:
    """Assign n words to children such that the sum of their gains (n, K) is the largest.

    A child takes exactly `room` (K,) words, n in all, and does so where they are at `present` (n,).
    Each word goes to one of its best candidates, or stays. Returns the child (n,) of each.

    Examples
    --------
    >>> gain = np.array([[5.0, 4.0], [9.0, 2.0], [1.0, 0.0]])
    >>> assigned(gain, np.array([1, 2]), present=np.array([0, 1, 1])).tolist()
    [1, 0, 1]
    """
    n, n_children = gain.shape
    few = min(candidates, n_children)
    is_allowed = np.zeros(gain.shape, np.bool_)
    best = np.argpartition(-gain, few - 1, axis=1)[:, :few]
    np.put_along_axis(is_allowed, best, True, axis=1)
    is_allowed[np.arange(n), present] = True
    word, child = np.nonzero(is_allowed)
    pairs, ones = np.arange(len(word)), np.ones(2 * len(word))
    sums = np.concatenate([word, n + child]), np.tile(pairs, 2)
    A: Any = scipy.sparse.csr_array((ones, sums), shape=(n + n_children, len(word)))
    found = scipy.optimize.linprog(
        -gain[word, child] / max(float(np.abs(gain).max()), np.finfo(np.float64).tiny),
        A_eq=A,
        b_eq=np.concatenate([np.ones(n), room]),
        bounds=(0, 1),
        method="highs-ds",
    )
    is_taken = np.asarray(found.x) > 0.5  # the vertices of this program are integers
    of_word = np.empty(n, np.int64)
    of_word[word[is_taken]] = child[is_taken]
    return of_word


def greedily(gain: Float64, room: Int64) -> Int64:
    """Assign n words to children, those first that lose most elsewhere; return the child (n,).

    A child takes exactly `room` (K,) words, n in all. In each round, every word asks for the child
    with room where its gain (n, K) is the largest, and a child takes those whose second choice is
    the worst. The sum of the gains is near the largest, which `assigned` finds: 10,000 words and
    100 children take 0.03 s here, and a minute there. O(n K) a round, and at most K rounds.

    Examples
    --------
    >>> gain = np.array([[5.0, 4.0], [9.0, 2.0], [1.0, 0.0]])
    >>> greedily(gain, np.array([1, 2])).tolist()
    [1, 0, 1]
    """
    child, room = np.full(len(gain), -1), room.copy()
    waiting = np.arange(len(gain))
    while waiting.size:
        with_room = np.flatnonzero(room)
        of_waiting = gain[np.ix_(waiting, with_room)]
        best = of_waiting.argmax(axis=1)
        lost = of_waiting[np.arange(len(waiting)), best]
        if len(with_room) > 1:
            lost = lost - np.partition(of_waiting, -2, axis=1)[:, -2]
        # words by the child that they ask for, those that lose most first
        order = np.lexsort((-lost, best))
        asked = best[order]
        place = np.arange(len(order)) - np.searchsorted(asked, asked)
        taken = order[place < room[with_room[asked]]]
        child[waiting[taken]] = with_room[best[taken]]
        room -= np.bincount(child[waiting[taken]], minlength=len(room))
        waiting = np.delete(waiting, taken)
    return child


def _read(model: Path) -> tuple[Tree, Array, Array]:
    """Return the tree of a saved model, its weight rows and their biases."""
    weights = current_file(model, "weights.safetensors")
    tree = load(current_file(model, "tree.json"))
    if not tree.has_single_codes:
        raise InputError(f"the tree of {model} gives several codes to a label; learned takes one")
    with reading(weights, FileFormatError):
        try:
            with safe_open(weights, framework="numpy") as file:
                weight, bias = file.get_tensor(ROWS), file.get_tensor(BIASES)
        except SafetensorError as error:
            raise FileFormatError(
                f"{weights} has no weights of a tree's nodes: {one_line(error)}"
            ) from error
    return tree, weight, bias


def _order_of(tree: Tree, vectors: WordVectors) -> Int64:
    """Return the rows (V,) of the vectors in the order of the tree's labels."""
    number = {label: i for i, label in enumerate(vectors.labels)}
    if len(number) != tree.n_labels or any(label not in number for label in tree.labels):
        raise InputError(
            f"the vectors are of other words than the model's tree ({len(number):,} and "
            f"{tree.n_labels:,}); give the mean predicted vectors of this model"
        )
    return np.array([number[label] for label in tree.labels])
