"""The table of Mnih & Hinton (2008) on the Penn Treebank: trees learned from vectors, and flat.

For every random state a random tree is trained, its mean predicted vectors make the mixture
trees, and every row is trained under the same regime. Every finished run is kept in the folder,
so that the command goes on where it stopped; `--rows` and `--states` choose some of the work.
Perplexities are means over random states, with the sample standard deviation. Speeds are measured
at the end, all trees in turns in one process.

    python -m benchmarks.mnih_hinton [--states 3] [--epochs 12] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hstree
from benchmarks import table
from benchmarks.training import speeds
from hstree.bootstrap import grown
from hstree.evaluation import Parts, corpus_parts
from hstree.runs import Result, run, vectors_of

#: Row -> the builder, its options, and the row whose mean predicted vectors it grows from.
ROWS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "RANDOM": ("random", {}, None),
    "HUFFMAN": ("huffman", {}, None),
    "BALANCED": ("gmm", {"split": "balanced"}, "RANDOM"),
    "ADAPTIVE": ("gmm", {}, "RANDOM"),
    "ADAPTIVE(0.25)": ("gmm", {"epsilon": 0.25}, "RANDOM"),
    "ADAPTIVE(0.4)": ("gmm", {"epsilon": 0.4}, "RANDOM"),
    "ADAPTIVE(0.4) x 2": ("gmm", {"epsilon": 0.4, "trees": 2}, "RANDOM"),
    "ADAPTIVE(0.4) x 4": ("gmm", {"epsilon": 0.4, "trees": 4}, "RANDOM"),
    "Huffman over semantics": ("semantic", {}, "RANDOM"),
    "ADAPTIVE(0.4) x 4, round 2": ("gmm", {"epsilon": 0.4, "trees": 4}, "ADAPTIVE(0.4) x 4"),
    "ADAPTIVE(0.4) x 8, round 2": ("gmm", {"epsilon": 0.4, "trees": 8}, "ADAPTIVE(0.4) x 4"),
    "ADAPTIVE(0.4) x 12, round 2": ("gmm", {"epsilon": 0.4, "trees": 12}, "ADAPTIVE(0.4) x 4"),
    "flat": ("flat", {}, None),
}


def main() -> None:
    parser = table.parser(__doc__)
    data = os.environ.get("HSTREE_TEST_DATA")
    parser.add_argument("--ptb", type=Path, default=Path(data, "ptb") if data else None)
    parser.add_argument("--folder", type=Path, default=Path("runs/mnih_hinton"))
    parser.add_argument("--states", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--no-speeds", action="store_true", help="train only; no table")
    given = parser.parse_args()
    if given.ptb is None:
        sys.exit("set HSTREE_TEST_DATA, or give --ptb: ptb.train.txt, .valid.txt and .test.txt")
    texts = (hstree.Corpus.read(given.ptb / f"ptb.{p}.txt") for p in ("train", "valid", "test"))
    parts = corpus_parts(*texts)
    results: dict[str, list[Result]] = {}
    for state in given.states:
        for row in given.rows:
            result = train(row, state, parts, given.folder, given.epochs)
            results.setdefault(row, []).append(result)
            print(f"{row}, state {state}: {figures(result)}", file=sys.stderr)
    if not given.no_speeds:
        table.report("mnih_hinton", rows_of(results, parts, given), given.json)


def train(row: str, state: int, parts: Parts, folder: Path, epochs: int) -> Result:
    """Train one row for one random state, and what it grows from before it."""
    method, options, source = ROWS[row]
    own = folder_of(folder, row, state)
    seed = {"random_state": state} if method in ("random", "gmm") else {}
    if source is None:
        tree = hstree.build(method, parts.train, **options, **seed)
    else:
        train(source, state, parts, folder, epochs)
        vectors = vectors_of(folder_of(folder, source, state))
        tree = grown(vectors, own, method, {**options, **seed})
    return run(tree, parts, own, epochs=epochs, random_state=state)


def folder_of(folder: Path, row: str, state: int) -> Path:
    plain = "".join(c if c.isalnum() or c == "." else "-" for c in row).strip("-").lower()
    return folder / f"state-{state}" / plain


def figures(result: Result) -> str:
    return ", ".join(f"{part} {result['perplexity'][part]:.1f}" for part in ("valid", "test"))


def rows_of(results: dict[str, list[Result]], parts: Parts, given: Any) -> Iterator[dict[str, Any]]:
    """Lay out the table: costs of the first state's tree, perplexities over all states."""
    trees = {
        row: hstree.load(folder_of(given.folder, row, given.states[0]) / "tree.json")
        for row in results
    }
    measured = speeds(trees, parts.train, 256, rounds=5)
    for row, found in results.items():
        tree = found[0]["tree"]
        speed = statistics.median(measured[row])
        yield {
            "tree": row,
            "codes/word": tree["codes_per_label"],
            "code length": tree["code_length"]["weighted"],
            "scores/target": tree["scores_per_target"],
            **{part: spread(found, part) for part in ("valid", "test")},
            "epochs": max(len(result["epochs"]) for result in found),
            "s/epoch": len(parts.train) / speed,
            "tokens/s": speed,
        }


def spread(results: list[Result], part: str) -> str:
    values = [result["perplexity"][part] for result in results]
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} ({len(values)})"


if __name__ == "__main__":
    main()
