"""A finished row of a comparison: costs, perplexities, the ratio to flat, speeds.

The figures are those of ``docs/results-format.md``. Nothing is trained here.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from hstree._typing import Float64, Int64
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import Vocabulary
from hstree.experiments.runs import Result
from hstree.experiments.significance import paired_ratio
from hstree.tree import Tree
from hstree.tree.codes import Codes
from hstree.tree.statistics import tree_statistics


def tree_costs(tree: Tree, train: Corpus, model: Path) -> dict[str, Any]:
    """Return what a tree is, and what its codes and its trained model cost.

    All is weighted by the training part's counts, which are the same for every tree; one that was
    made elsewhere has others, or none.
    """
    options = tree.meta.get("options")
    counts = train.with_vocabulary(Vocabulary(tree.labels, [0] * tree.n_labels)).counts
    figures = tree_statistics(tree, counts)
    return {
        "method": figures.method,
        "options": options if isinstance(options, dict) else {},
        "tree": figures.as_dict(),
        "code_lengths": code_lengths(tree, counts),
        "parameters": parameters_of(model),
        "in_wordnet": in_wordnet(tree),
    }


def in_wordnet(tree: Tree) -> float | None:
    """Return the share of the tokens that WordNet has; None for a tree not built from WordNet."""
    match tree.meta.get("method"), tree.meta.get("coverage"):
        case "wordnet", {"tokens_in_wordnet": float(share)}:
            return share
    return None


def at_epoch_limit(results: Sequence[Result]) -> int:
    """Return how many trainings stopped at the limit of epochs, before they had converged.

    Those of word2vec's models have a schedule over all their epochs, and are not counted.
    """
    return sum(
        result["options"].get("model", "lbl") == "lbl"
        and not result.get("converged")
        and 0 < result["options"]["epochs"] == len(result["epochs"])
        for result in results
    )


def from_text(costs: Sequence[Mapping[str, float] | None]) -> dict[str, float | None] | None:
    """Return the seconds from the text to a model, the mean over random states; None if unknown.

    Parameters
    ----------
    costs : sequence of mapping or None
        The seconds of each step, for each random state.
    """
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    steps = {step: statistics.fmean(cost[step] for cost in known) for step in known[0]}
    return {"seconds": sum(steps.values()), **steps}


def code_lengths(tree: Tree, counts: Int64) -> list[dict[str, Any]]:
    """Return how many codes of each length a tree has, and how many tokens they carry.

    Each code of a label counts; the label's count is split evenly over its codes.
    Lengths without a code are left out.
    """
    codes = Codes(tree, cache_limit=0)
    # The one label of a tree without nodes has no code.
    share = (counts / np.maximum(tree.codes_per_label, 1))[codes.label]
    number, tokens = np.bincount(codes.length), np.bincount(codes.length, share)
    return [
        {"length": length, "codes": int(number[length]), "tokens": float(tokens[length])}
        for length in np.flatnonzero(number).tolist()
    ]


def over_seeds(results: Sequence[Result]) -> dict[str, Any]:
    """Return the mean and the sample standard deviation of each perplexity."""
    found = {}
    for part in ("valid", "test", "test_without_oov"):
        values = [_number(result["perplexity"][part]) for result in results]
        found[part] = {
            "mean": statistics.fmean(values),
            "sd": statistics.stdev(values) if len(values) > 1 else None,
            "n": len(values),
        }
    return found


def tree_run(seed: int, folder: str, result: Result) -> dict[str, Any]:
    """Return what a row says of one of its runs."""
    told = {name: result[name] for name in ("perplexity", "epochs", "seconds")}
    return {"seed": seed, "folder": folder, **told}


def to_flat(own: Sequence[Float64], flat: Sequence[Float64] | None) -> dict[str, Any] | None:
    """Return how many times flat's perplexity a row has; None where there is no flat row."""
    found = None if flat is None else paired_ratio(own, flat)
    return None if found is None else asdict(found)


def speed_figures(
    measured: Mapping[str, Sequence[float]], name: str, flat: str | None, tokens: int
) -> dict[str, Any]:
    """Return a tree's speed, what it makes of an epoch, and how many times flat's it is.

    Parameters
    ----------
    measured : mapping
        Tokens a second of every tree, round by round.
    name, flat : str
        The tree; the flat one, if there is one.
    tokens : int
        Of the training part.
    """
    speed = statistics.median(measured[name])
    ratios = None
    if flat is not None:
        ratios = [a / b for a, b in zip(measured[name], measured[flat], strict=True)]
    return {
        "seconds_per_epoch": tokens / speed,
        "tokens_per_second": speed,
        "speed_up": None if ratios is None else statistics.median(ratios),
    }


def add_speed_ups(laid_out: Sequence[dict[str, Any]], flat: str | None) -> None:
    """Add to what each row takes from the text on, how many times as fast as the flat row it is."""
    level = next((row["from_text"] for row in laid_out if row["name"] == flat), None)
    for row in laid_out:
        if (cost := row["from_text"]) is not None:
            cost["speed_up"] = None if level is None else level["seconds"] / cost["seconds"]


NO_SPEED: dict[str, Any] = dict.fromkeys(("seconds_per_epoch", "tokens_per_second", "speed_up"))


def parameters_of(model: Path) -> int:
    """Count the trained numbers of a saved model, without reading them."""
    with safe_open(model / "weights.safetensors", "numpy") as tensors:
        shapes = [tensors.get_slice(name).get_shape() for name in tensors.keys()]  # noqa: SIM118
    return sum(int(np.prod(shape)) for shape in shapes)


def _number(value: float | None) -> float:
    """Return a figure as it was before JSON, which has null for what is no finite number."""
    return float("nan") if value is None else value
