"""One parent a synset, no chains: on the small taxonomy, and on any graph."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hstree.builders.wordnet.hierarchy import resolve, wide_tree
from hstree.builders.wordnet.lookup import look_up
from hstree.builders.wordnet.taxonomy import TableSynset
from tests.builders.label_sets import sets_by_name
from tests.builders.wordnet.small import SYNSETS, taxonomy_of
from tests.strategies import children_of

SMALL = taxonomy_of(SYNSETS)


def resolved(words, counts=None, senses="first", taxonomy=SMALL):
    counts = np.ones(len(words), np.int64) if counts is None else np.array(counts)
    found = look_up(words, taxonomy, senses)
    assert (found.n_senses > 0).all()
    hierarchy = resolve(taxonomy, found.word, found.synset, counts)
    tree = wide_tree(hierarchy, taxonomy, found.word, found.synset, words, counts)
    return hierarchy, tree


def nested(tree):
    """The tree as nested lists: a name, then words and lists."""
    children = children_of(tree)

    def node(n):
        below = [node(c) if c >= 0 else tree.labels[~c] for c in children[n]]
        return [tree.names[n], *below]

    return node(0) if children else tree.labels[0]


def test_roots_are_side_by_side_under_their_part_of_speech():
    words = ["toy", "artifact", "animal", "dog", "fast", "quickly", "decoy"]
    _, tree = resolved(words, [1, 1, 1, 1, 1, 1, 1])
    assert nested(tree) == [
        "WordNet",
        ["nouns", ["animal.n.01", "animal", "dog", "decoy"], ["artifact.n.01", "toy", "artifact"]],
        ["quick.a.01", "fast", "quickly"],
    ]


def test_chains_go_by_their_last_name_and_no_word_hangs_twice_under_a_node():
    _, tree = resolved(["puppy", "dog"])
    assert nested(tree) == ["dog.n.01", "puppy", "dog"]
    # "pet" has two synsets, one below the other with no other word: once it is enough.
    synsets = [
        TableSynset("n", [], {"animal": (1, 0)}),
        TableSynset("n", [(0, "@")], {"pet": (1, 0)}),
        TableSynset("n", [(1, "@")], {"pet": (2, 0)}),
    ]
    _, tree = resolved(["pet", "animal"], senses="all", taxonomy=taxonomy_of(synsets))
    assert nested(tree) == ["animal.n.01", "pet", "animal"]


@st.composite
def graphs(draw):
    """Synsets with any parents, each with one word; some words."""
    n = draw(st.integers(1, 9))
    order = draw(st.permutations(range(n)))  # from the top down
    above = [order[: order.index(i)] for i in range(n)]
    parents = [sorted(p for p in above[i] if draw(st.booleans()))[:3] for i in range(n)]
    lemmas = [
        sorted(draw(st.sets(st.sampled_from(["bb", "cc", "dd", "ee", "ff", "gg"]), max_size=2)))
        for _ in range(n)
    ]
    kinds = sorted(
        draw(st.lists(st.sampled_from("nvar"), min_size=n, max_size=n)), key="nvar".index
    )
    seen = {}
    synsets = []
    for i in range(n):
        senses = {f"own{i}": (1, 0)}
        for lemma in lemmas[i]:
            seen[kinds[i], lemma] = seen.get((kinds[i], lemma), 0) + 1
            senses[lemma] = (seen[kinds[i], lemma], 0)
        synsets.append(TableSynset(kinds[i], [(p, "@") for p in parents[i]], senses))
    there = sorted({lemma for s in synsets for lemma in s.senses})
    words = draw(st.lists(st.sampled_from(there), min_size=1, unique=True))
    counts = draw(st.lists(st.integers(0, 4), min_size=len(words), max_size=len(words)))
    return synsets, words, counts


def words_below(synsets, words, at):
    """Brute force: every word with a path up through a synset."""
    found, waiting, seen = set(), [at], set()
    while waiting:
        here = waiting.pop()
        seen.add(here)
        found |= set(words) & set(synsets[here].senses)
        waiting += [i for i, s in enumerate(synsets) if here in dict(s.parents) and i not in seen]
    return found


@given(graphs())
def test_any_graph_becomes_a_tree_by_the_rule(graph):
    synsets, words, counts = graph
    taxonomy = taxonomy_of(synsets)
    hierarchy, tree = resolved(words, counts, "all", taxonomy)
    count_of = dict(zip(words, counts, strict=True))
    synset, parent = hierarchy.synset.tolist(), hierarchy.parent.tolist()
    weight = {s: sum(count_of[w] for w in words_below(synsets, words, s)) for s in synset}
    assert set(synset) == {i for i in range(len(synsets)) if words_below(synsets, words, i)}
    parent_of = {s: synset[p] for s, p in zip(synset, parent, strict=True) if p >= 0}
    for s in synset:
        ranked = sorted(dict(synsets[s].parents), key=lambda p: (-weight[p], p))
        assert ([parent_of[s]] if s in parent_of else []) == ranked[:1]
    assert set(tree.labels) == set(words)
    for name, below in sets_by_name(tree).items():
        if name in taxonomy.names:
            assert below == kept_below(taxonomy.names.index(name), synsets, words, parent_of)


def comes_to(start, end, parent_of):
    while start != end and start in parent_of:
        start = parent_of[start]
    return start == end


def kept_below(at, synsets, words, parent_of):
    under = [s for s in range(len(synsets)) if comes_to(s, at, parent_of)]
    return {w for s in under for w in words if w in synsets[s].senses}
