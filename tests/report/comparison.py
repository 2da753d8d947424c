"""Files of an invented comparison: real trees, and results that nobody measured."""

import math

from msgspec import convert
from msgspec.structs import replace

from hstree import report
from hstree.builders import build
from hstree.data.vocabulary import Vocabulary
from hstree.experiments import results
from hstree.experiments.recommendation import choose, recommendation_sentences
from hstree.experiments.results import (
    Band,
    CandidateResult,
    Choice,
    Comparison,
    Epochs,
    JobRecord,
    Machine,
    Ratio,
    Speed,
    Spread,
    Timings,
    TreeRecord,
    VocabularyRecord,
)
from hstree.training.trainer import Epoch
from hstree.tree import Tree

SCORED = {"valid": 1.1, "test": 1.0, "test_without_oov": 0.99}
BANDS = [
    Band(least=1, most=9, words=2_000, tokens=300),
    Band(least=10, most=99, words=6_100, tokens=1_500),
    Band(least=100, most=999, words=1_700, tokens=2_400),
    Band(least=1_000, most=9_999, words=180, tokens=4_031),
    Band(least=None, most=None, words=0, tokens=12),
]
OPTIONS = {"dim": 100, "context": 5, "full": False, "batch_size": 256, "learning_rate": 0.1,
           "dropout": 0.35, "weight_decay": None}  # fmt: skip
SMALL = Tree.from_children(["a", "b", "c"], [[1, ~2], [~0, ~1]], counts=[3, 2, 1])


def a_candidate(
    name, *, kind="tree", test=100.0, valid=None, sd=None, n=1, speed=1000.0, **changed
):
    """Return a candidate; `speed` is in tokens per second, beside a flat softmax of 100."""
    means = {split: factor * test for split, factor in SCORED.items()}
    means["valid"] = means["valid"] if valid is None else valid
    epochs = [epoch(i, valid=means["valid"] * (1 + 2 * math.exp(-i))) for i in range(1, 4)]
    is_tree, is_flat = kind == "tree", name == "flat"
    tree = Tree.from_children(SMALL.labels, [[~0, ~1, ~2]]) if is_flat else SMALL
    seconds = Timings(vectors=25.0, tree=5.0, training=4e4 / speed if speed else 1.0)
    fields = {
        "method": name.split()[0],
        "summary": f"Summary of {name.split()[0]}.",
        "options": {},
        "layer": name.partition(" + ")[2] or None,
        "models": 1,
        "is_flat": is_flat,
        "tree": convert(tree.stats().as_dict(), TreeRecord) if is_tree else None,
        "tree_file": f"trees/{name}/seed-0/tree.json" if is_tree else None,
        "parameters": 1_000,
        "jobs": [
            JobRecord(seed=seed, folder=f"runs/{name}/seed-{seed}", perplexity=means,
                       epochs=[] if kind == "ngram" else epochs)
            for seed in range(n)
        ],
        "perplexity": {split: Spread(mean=mean, sd=sd, n=n) for split, mean in means.items()},
        "at_epoch_limit": 0,
        "timings": seconds,
        "from_text_times_flat": 400.0 / seconds.total,
        "by_band": [],
    }  # fmt: skip
    if kind != "ngram" and speed:
        for measure in ("training", "nll", "top_k"):
            rounds = [0.9 * speed, speed, 1.1 * speed]
            fields[measure] = Speed(rounds=rounds, times_flat=speed / 100, low=speed / 111,
                                    high=speed / 91)  # fmt: skip
    return CandidateResult(name=name, kind=kind, **fields | changed)


def epoch(number, *, valid, share=1.0):
    return Epoch(epoch=number, train=None, valid=valid, seconds=999.0, tokens_per_second=1.0,
                 learning_rate=0.1, share=share)  # fmt: skip


def a_comparison(*candidates, **changed):
    """Return the comparison of some candidates; the answer is chosen by the rule of the library."""
    part = {"kind": "corpus", "name": "made up", "sha256": "ab" * 32, "lines": [0, 1000]}
    fields = {
        "predicts": "word given the words before it",
        "corpus": dict.fromkeys(("train", "valid", "test"), part),
        "tokens": {"train": 92_958, "valid": 7_376, "test": 8_243},
        "oov": {"train": 0, "valid": 0, "test": 12},
        "vocabulary": VocabularyRecord(size=10_000, sha256="4a819943" * 8),
        "options": OPTIONS,
        "stop": Epochs(6),
        "seeds": [0],
        "versions": {"python": "3.11", "hstree": "0.1.0"},
        "machine": Machine(cores=2, system="Linux", processor="x86_64"),
        "unigram": 639.3,
        "bands": [],
        "candidates": list(candidates),
        "choice": choose(candidates),
    }
    comparison = Comparison(**fields | changed)
    return replace(comparison, recommendation=recommendation_sentences(comparison))


def chosen(name, *others, **changed):
    return Choice(chosen=name, tolerance=0.03, candidates=[name, *others], **changed)


def small_trees(words=("the", "of", "bank")):
    vocabulary = Vocabulary(list(words), list(range(len(words), 0, -1)))
    return {method: build(method, vocabulary) for method in ("huffman", "flat")}


def leave(folder, trees, *, ngrams=("kn3",), seeds=(0, 1), oov=12, **changed):
    """Write the files of a comparison of `trees`, by the candidates' names; return its folder."""
    candidates = [
        _tree_candidate(folder, name, tree, i, seeds)
        for i, (name, tree) in enumerate(trees.items())
    ]
    candidates += [_ngram_candidate(name, i) for i, name in enumerate(ngrams)]
    if "bands" in changed:
        candidates = [replace(candidate, by_band=[]) for candidate in candidates]
    first = next(iter(trees.values()))
    tokens = {"train": 0, "valid": 0, "test": oov}
    words = VocabularyRecord(size=first.n_labels, sha256="4a819943" * 8)
    fields = {"oov": tokens, "vocabulary": words, "seeds": list(seeds), "bands": BANDS}
    comparison = a_comparison(*candidates, **fields | changed)
    results.save(comparison, folder)
    Vocabulary(first.labels, [1] * first.n_labels).save(folder / results.WORDS)
    return folder


def write_page(folder):
    return report.write(results.load(folder), folder / "report.html")


def _tree_candidate(folder, name, tree, i, seeds):
    method = str(tree.meta.get("method") or "tree")
    file = f"trees/row-{i}/seed-{seeds[0]}/tree.json"
    (folder / file).parent.mkdir(parents=True)
    tree.save(folder / file)
    level = 125.6 if method == "flat" else 163 - 7 * i
    return a_candidate(
        name, test=level, sd=0.004 * level if len(seeds) > 1 else None, n=len(seeds),
        speed=14_000 if method == "flat" else 200_000 / (1 + i),
        method=method, tree=convert(tree.stats().as_dict(), TreeRecord), tree_file=file,
        is_flat=method == "flat", at_epoch_limit=i % 2,
        to_flat=Ratio(level / 125.6, level / 125.6 - 0.01, level / 125.6 + 0.01, 0.0004, 82),
        by_band=[level * factor for factor in (90, 12, 3 + 0.1 * i, 0.4, 0.2)],
    )  # fmt: skip


def _ngram_candidate(name, i):
    return a_candidate(
        name, kind="ngram", test=148.0 - 7 * i, timings=Timings(training=2.0),
        by_band=[11_000.0, 1_500.0, 410.0, 55.0, 30.0],
    )  # fmt: skip
