"""What a comparison leaves, made up: real trees, and figures that nobody measured."""

import math

import numpy as np

from hstree._files import write_json
from hstree.tree.codes import Codes


def leave(folder, trees, *, baselines=("kn3",), seeds=(0, 1), oov=12, **changed):
    """Write ``results.json`` and the trees of a comparison of `trees`, by the rows' names."""
    rows = [_tree_row(folder, name, tree, i, seeds) for i, (name, tree) in enumerate(trees.items())]
    rows += [_baseline_row(name, i) for i, name in enumerate(baselines)]
    part = {"kind": "text", "name": "made up", "sha256": "ab" * 32, "lines": [0, 1000]}
    first = next(iter(trees.values()))
    results = {
        "format": "hstree results",
        "version": 3,
        "corpus": {"train": part, "valid": part, "test": part},
        "tokens": {"train": 92_958, "valid": 7_376, "test": 8_243},
        "oov": {"train": 0, "valid": 0, "test": oov},
        "vocabulary": {"size": first.n_labels, "sha256": "4a819943" * 8},
        "options": {
            "dim": 100, "context": 5, "full": False, "epochs": 6, "batch_size": 256,
            "learning_rate": 0.1, "dropout": 0.35, "weight_decay": 1.5e-5, "seeds": list(seeds),
        },
        "versions": {"python": "3.11", "numpy": "2.0", "hstree": "0.1.0"},
        "machine": {"cores": 2, "system": "Linux", "processor": "x86_64"},
        "unigram": 639.3,
        "bands": BANDS,
        "choice": _choice(rows),
        "rows": rows,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.csv").write_text("name,test\n")
    write_json(folder / "results.json", {**results, **changed})
    return folder


BANDS = [
    {"least": 1, "most": 9, "words": 2_000, "tokens": 300},
    {"least": 10, "most": 99, "words": 6_100, "tokens": 1_500},
    {"least": 100, "most": 999, "words": 1_700, "tokens": 2_400},
    {"least": 1_000, "most": 9_999, "words": 180, "tokens": 4_031},
    {"least": None, "most": None, "words": 0, "tokens": 12},
]


def _tree_row(folder, name, tree, place, seeds):
    home = f"runs/row-{place}/seed-{seeds[0]}"
    (folder / home).mkdir(parents=True)
    tree.save(folder / home / "tree.json")
    statistics = tree.stats()
    flat = tree.meta.get("method") == "flat"
    level = 125.6 if flat else 163 - 7 * place
    speed = 14_000 if flat else 200_000 / (1 + place)
    test = [level * (1 + 0.004 * i) for i in range(len(seeds))]
    runs = [
        {"seed": seed, "folder": home, "perplexity": _perplexities(found), "seconds": 60.0,
         "epochs": _epochs(found, speed)}
        for seed, found in zip(seeds, test, strict=True)
    ]  # fmt: skip
    ratio = float(np.mean(test)) / 125.8
    return {
        "name": name,
        "entry": {"output": name},
        "kind": "tree",
        "method": tree.meta.get("method"),
        "options": tree.meta.get("options", {}),
        "tree_file": f"{home}/tree.json",
        "tree": statistics.as_dict(),
        "code_lengths": _code_lengths(tree),
        "parameters": 1_000_000 + 100 * tree.n_nodes,
        "in_wordnet": 0.41 if tree.meta.get("method") == "wordnet" else None,
        "runs": runs,
        "perplexity": {part: _spread(test, part) for part in PARTS},
        "at_epoch_limit": place % 2, "seen": None,
        "to_flat": {"ratio": 1.0 if flat else ratio, "low": ratio - 0.01, "high": ratio + 0.01,
                    "p": None if flat else 0.0004, "blocks": 82},
        "seconds_per_epoch": 929_589 / speed,
        "tokens_per_second": speed,
        "speed_up": speed / 14_000,
        "speed_rounds": [0.9 * speed, speed, 1.1 * speed],
        "scoring": {"nll": 3 * speed, "top_k": 1e6 / speed},
        "from_text": {"seconds": 4e6 / speed + 30, "vectors": 25.0, "tree": 5.0,
                      "training": 4e6 / speed, "speed_up": speed / 15_000},
        "by_band": [level * factor for factor in (90, 12, 3 + 0.1 * place, 0.4, 0.2)],
    }  # fmt: skip


def _choice(rows):
    trees = [row for row in rows if row["kind"] == "tree"]
    best = min(trees, key=lambda row: row["perplexity"]["valid"]["mean"])
    near = [
        row for row in trees
        if row["perplexity"]["valid"]["mean"] <= 1.03 * best["perplexity"]["valid"]["mean"]
    ]  # fmt: skip
    fastest = max(near, key=lambda row: row["tokens_per_second"])
    return {"by": "valid", "among": len(trees), "best": best["name"], "within": 0.03,
            "chosen": fastest["name"], "tied": []}  # fmt: skip


def _baseline_row(name, place):
    run = {
        "seed": None,
        "folder": f"runs/{name}",
        "perplexity": _perplexities(148 - place),
        "seconds": 14.0,
    }
    return {
        "name": name, "entry": {"baseline": name},
        "kind": "baseline", "method": name, "options": {"order": 3},
        "tree_file": None, "tree": None, "code_lengths": None, "parameters": None,
        "in_wordnet": None, "runs": [run], "at_epoch_limit": 0, "seen": None,
        "perplexity": {part: _spread([148.0 - 7 * place], part) for part in PARTS},
        "to_flat": {"ratio": 1.18, "low": 1.16, "high": 1.2, "p": 0.0, "blocks": 82},
        "seconds_per_epoch": None, "tokens_per_second": None, "speed_up": None,
        "from_text": {"seconds": 12.0, "vectors": 0.0, "tree": 0.0, "training": 12.0,
                      "speed_up": 5.0},
        "by_band": [11_000.0, 1_500.0, 410.0, 55.0, 30.0],
    }  # fmt: skip


PARTS = {"valid": 1.08, "test": 1.0, "test_without_oov": 0.99}


def _perplexities(test):
    return {"train": 0.7 * test, "unigram": 639.3} | {p: test * f for p, f in PARTS.items()}


def _spread(test, part):
    values = [value * PARTS[part] for value in test]
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "sd": sd, "n": len(values)}


def _epochs(test, speed):
    return [
        {"epoch": epoch, "train": test * 0.8, "valid": test * 1.08 * (1 + 2 * math.exp(-epoch)),
         "seconds": 929_589 / speed, "tokens_per_second": speed, "learning_rate": 0.1}
        for epoch in range(1, 7)
    ]  # fmt: skip


def _code_lengths(tree):
    codes = Codes(tree)
    counts = np.ones(tree.n_labels) if tree.counts is None else tree.counts
    tokens = np.bincount(codes.length, (counts / np.maximum(tree.codes_per_label, 1))[codes.label])
    number = np.bincount(codes.length)
    return [
        {"length": int(length), "codes": int(number[length]), "tokens": float(tokens[length])}
        for length in np.flatnonzero(number)
    ]
