"""Kneser-Ney n-gram models on the Penn Treebank: perplexity, seconds and peak memory.

Every row is a separate process, whose peak includes texts and interpreter. Contexts begin anew at
every line, or run over line ends as those of the log-bilinear model do; discounts are the three of
modified smoothing for each order, or one for all. The validation and the test split are scored.

    python -m benchmarks.kneser_ney [--ptb DIR] [--orders 3 5] [--json FILE]
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

from benchmarks import table
from benchmarks.fresh import measured
from benchmarks.texts import add_ptb, ptb_splits
from hstree.data.splits import Splits
from hstree.ngrams.kneser_ney import KneserNey

Discount = Literal["modified"] | float

DISCOUNTS: tuple[Discount, ...] = ("modified", 0.75)
CONTEXTS = {"line": True, "running": False}


def main() -> None:
    parser = table.parser(__doc__)
    add_ptb(parser)
    parser.add_argument("--orders", type=int, nargs="+", default=[3, 5], metavar="N")
    options = parser.parse_args()
    ptb_splits(options.ptb)  # a missing text ends it here, and none is encoded inside a measurement
    table.report("kneser_ney", rows(options.ptb, options.orders), options.json)


def rows(ptb: Path, orders: Sequence[int]) -> Iterator[table.Row]:
    for order, contexts, discount in product(orders, CONTEXTS, DISCOUNTS):
        cost = measured(prepared, fitted_and_scored, ptb, order, contexts, discount, describe=dict)
        figures = {
            name: value for name, value in cost.items() if name not in ("seconds", "peak_mib")
        }
        asked = {"order": order, "contexts": contexts, "discounts": str(discount)}
        yield {**asked, **figures, "peak MiB": cost["peak_mib"]}


def prepared(ptb: Path, order: int, contexts: str, discount: Discount) -> tuple[KneserNey, Splits]:
    return KneserNey(order, discount=discount, sentences=CONTEXTS[contexts]), ptb_splits(ptb)


def fitted_and_scored(model_and_splits: tuple[KneserNey, Splits]) -> dict[str, Any]:
    model, splits = model_and_splits
    began = time.perf_counter()
    model.fit(splits.train)
    fitted = time.perf_counter()
    valid, test = model.perplexity(splits.valid), model.perplexity(splits.test)
    return {
        "fit s": fitted - began,
        "score s": time.perf_counter() - fitted,
        "valid": f"{valid:.2f}",
        "test": f"{test:.2f}",
        "n-grams": sum(model.n_grams_),
    }


if __name__ == "__main__":
    main()
