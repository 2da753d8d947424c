"""A Kneser-Ney model on the splits of a comparison, kept like the run of a tree."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hstree._files import make_folder, write_json
from hstree._typing import Float64
from hstree._version import __version__
from hstree.data.text_score import perplexity
from hstree.experiments.entries import Baseline
from hstree.experiments.evaluation import Splits
from hstree.experiments.runs import (
    RESULT,
    Result,
    content_of,
    hashed,
    keep_nll,
    kept_nll,
    kept_result,
)

#: As Chen & Goodman (1999) recommend: three discounts, estimated from the counts.
DISCOUNT: Literal["modified"] = "modified"


def run_baseline(baseline: Baseline, splits: Splits, folder: Path) -> Result:
    """Fit and score an n-gram model, or return what a finished run of the same says.

    Parameters
    ----------
    baseline : Baseline
    splits : Splits
    folder : Path
        Made if it is missing. Gets ``test_nll.npy``, the nll of every test token in the order
        of the text, and ``result.json``.

    Returns
    -------
    dict
        ``perplexity`` of valid, test and test_without_oov; ``options``; ``parameters``, how many
        different n-grams there are; ``fit_seconds``, ``seconds`` with scoring; ``key``.
    """
    options = {"order": baseline.order, "discount": DISCOUNT}
    key = hashed({"hstree": __version__, "parts": content_of(splits), "kneser-ney": options})
    done = kept_result(folder, key)
    if done is not None and kept_nll(folder, len(splits.test)) is not None:
        return done
    # Here, so that a comparison without baselines does not wait for it.
    from hstree.ngrams.kneser_ney import KneserNey

    start = time.perf_counter()
    model = KneserNey(order=baseline.order, discount=DISCOUNT).fit(splits.train)
    fit_seconds = time.perf_counter() - start
    valid, test = (np.asarray(model.nll(part), np.float64) for part in (splits.valid, splits.test))
    in_vocabulary = splits.test.with_vocabulary(splits.train.vocabulary).ids(slice(None)) >= 0
    result = {
        "perplexity": {
            "valid": _perplexity(valid),
            "test": _perplexity(test),
            "test_without_oov": _perplexity(test[in_vocabulary]),
        },
        "options": options,
        "parameters": int(sum(model.n_grams_)),
        "fit_seconds": fit_seconds,
        "seconds": time.perf_counter() - start,
        "key": key,
    }
    make_folder(folder)
    (folder / RESULT).unlink(missing_ok=True)
    keep_nll(folder, test)
    write_json(folder / RESULT, result)
    return result


def _perplexity(nll: Float64) -> float:
    return perplexity(float(nll.sum()), len(nll))


def as_run(result: Result, folder: str) -> dict[str, Any]:
    """Return the one run of a baseline's row."""
    return {
        "seed": None,
        "folder": folder,
        "perplexity": result["perplexity"],
        "seconds": result["seconds"],
    }
