"""A tree in a few lines: its size, what its codes cost, and what it was built from."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hstree_cli.console import count, figure

if TYPE_CHECKING:
    from hstree.tree import Tree
    from hstree.tree.statistics import TreeStatistics


def tree_facts(stats: TreeStatistics) -> list[tuple[str, str]]:
    """Return names and figures of a tree."""
    facts = [
        ("method", str(stats.method or "-")),
        ("labels", count(stats.labels)),
        ("nodes", count(stats.nodes)),
        ("code length", code_length(stats.length_weighted, stats.length_uniform)),
        ("scores/target", figure(stats.scores_per_target)),
        ("depth", count(stats.depth)),
        ("sha256", stats.sha256),
    ]
    if stats.entropy is not None:
        bounds = f"entropy {figure(stats.entropy)}, Huffman length {figure(stats.huffman_length)}"
        facts.insert(-1, ("bounds", f"{bounds} (binary codes, one a label)"))
    if stats.max_codes_per_label > 1:
        codes = f"{figure(stats.codes_per_label)}, at most {count(stats.max_codes_per_label)}"
        codes += "; the code length is their sum"
        facts.insert(3, ("codes a label", codes))
    return facts


def code_length(weighted: float | None, uniform: float) -> str:
    """Return a tree's mean code lengths, by counts where it has any."""
    by_counts = "" if weighted is None else f"{figure(weighted)} by counts, "
    return f"{by_counts}{figure(uniform)} a label"


def input_facts(tree: Tree) -> list[tuple[str, str]]:
    """Return what a tree's file says about what it was built from."""
    facts = []
    options = tree.meta.get("options")
    if isinstance(options, dict):
        given = [f"{name} {value}" for name, value in options.items() if value is not None]
        facts += [("options", ", ".join(given))] if given else []
    if isinstance(reached := tree.meta.get("max_codes_reached"), int) and reached:
        facts.append(("bounded", f"{count(reached)} words would have more codes but for max_codes"))
    for key, facts_of in (("classes", _class_facts), ("coverage", _wordnet_facts)):
        # Another package's builder may use the same name for something else.
        with suppress(TypeError, ValueError, LookupError, AttributeError):
            facts += facts_of(tree.meta[key])
    read = tree.meta.get("input")
    if isinstance(read, dict):
        facts.append(("built from", _input(read)))
        facts += _coverage(read)
    return facts


def _input(read: dict[str, Any]) -> str:
    name = str(read.get("name", read.get("kind", "-")))
    if "lines" not in read and isinstance(sha256 := read.get("sha256"), str):
        return f"{name}, sha256 {sha256[:16]}"
    lines = read.get("lines")
    match lines:
        case [int(first), int(last)]:
            return f"{name}, lines {count(first + 1)} to {count(last)}"
    return name


def _coverage(read: dict[str, Any]) -> list[tuple[str, str]]:
    without = read.get("words_without_vector")
    if not isinstance(without, int):
        return []
    tokens = read.get("tokens_without_vector")
    of_tokens = f", {100 * tokens:.2f}% of the tokens" if isinstance(tokens, float) else ""
    return [
        (
            "without vector",
            f"{count(without)} words{of_tokens}, in a Huffman tree of their own",
        )
    ]


def _class_facts(classes: dict[str, Any]) -> list[tuple[str, str]]:
    """Say how many classes there are, how they were found, and what they predict."""
    number = f"{count(classes['number'])}, by {classes['by']}"
    if head := classes.get("head"):
        number += f", beside a head of {count(head)} words"
    facts = [("classes", number)]
    if perplexity := classes.get("bigram_perplexity"):
        fell = classes.get("perplexity_by_sweep") or []
        how = f", from {figure(fell[0], 1)} in {count(len(fell) - 1)} sweeps" if fell else ""
        facts.append(("class bigrams", f"perplexity {figure(perplexity, 1)}{how}"))
    for key, what in (("words_without_vector", "vector"), ("words_without_class", "class")):
        if without := classes.get(key):
            facts.append((f"without {what}", f"{count(without)} words"))
    return facts


_PARTS_OF_SPEECH = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}


def _wordnet_facts(coverage: dict[str, Any]) -> list[tuple[str, str]]:
    """Say how many words WordNet has, as what, and which of its edges were cut."""
    words, inside = coverage["words"], coverage["words_in_wordnet"]
    tokens = coverage["tokens_in_wordnet"]
    of_tokens = "" if tokens is None else f", {100 * tokens:.2f}% of the tokens"
    as_pos = coverage["by_part_of_speech"]
    several = f"{count(coverage['multi_sense'])} words have several"
    edges, cut, synsets = (coverage[key] for key in ("edges", "edges_cut", "synsets"))
    return [
        ("in WordNet", f"{count(inside)} of {count(words)} words{of_tokens}"),
        (
            "as",
            ", ".join(f"{count(n)} {_PARTS_OF_SPEECH.get(pos, pos)}" for pos, n in as_pos.items()),
        ),
        ("lemmatised", f"{count(coverage['lemmatised'])} words, found by another form"),
        ("senses", f"{several}; {count(coverage['senses_unused'])} senses are not used"),
        ("is-a edges", f"{count(edges)} among {count(synsets)} synsets, of which {count(cut)} cut"),
    ]
