"""Figures of the rows of a comparison, as ``docs/results-format.md`` describes them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from hstree._text import plural
from hstree._typing import Bool, Float64, Int64
from hstree.data.text_score import perplexity
from hstree.experiments.evaluation import Splits
from hstree.experiments.results import (
    SCORED,
    Band,
    Choice,
    LengthCount,
    NormaliserFigures,
    Row,
    RunResult,
    Scored,
    SecondsFromText,
    Spread,
    finite,
)
from hstree.models import kind_of
from hstree.tree import Tree
from hstree.tree.codes import Codes

#: Greatest relative distance to the lowest validation perplexity of a row that is nearly as good.
TOLERANCE = 0.03

#: Smallest count of each band; a first band has the words that never occur.
_BAND_STARTS = 10 ** np.arange(18)


def in_wordnet(tree: Tree) -> float | None:
    """Return the share of the tokens that WordNet has; None for a tree not built from WordNet."""
    match tree.meta.get("method"), tree.meta.get("coverage"):
        case "wordnet", {"tokens_in_wordnet": float(share)}:
            return share
    return None


def words_in_wordnet(tree: Tree) -> Bool | None:
    """Return whether WordNet has each label (V,); None for a tree not built from WordNet.

    The others are below the last child of the root.
    """
    match tree.meta.get("method"), tree.meta.get("coverage"):
        case "wordnet", {"words": int(words), "words_in_wordnet": int(inside)}:
            pass
        case _:
            return None
    if inside in (0, words):
        return np.full(tree.n_labels, inside > 0)
    is_outside = np.zeros(len(tree.child), np.int64)
    is_outside[tree.child_start[1] - 1] = 1
    tree.sum_down(is_outside)
    to_label = tree.child < 0
    has = np.ones(tree.n_labels, np.bool_)
    has[~tree.child[to_label]] = is_outside[to_label] == 0
    return has


def covered_tokens(tree: Tree, splits: Splits) -> Bool | None:
    """Return whether WordNet has the word of each test token (T,); None as `words_in_wordnet`."""
    has = words_in_wordnet(tree)
    if has is None:
        return None
    vocabulary = splits.train.vocabulary
    number = {word: i for i, word in enumerate(tree.labels)}
    of_word = has[[number[word] for word in vocabulary.words]]
    ids = splits.test.with_vocabulary(vocabulary).ids(slice(None))
    return (ids >= 0) & of_word[ids]


def mean_perplexity(nlls: Sequence[Float64], some: Bool) -> float | None:
    """Return the mean perplexity of some tokens (T,) over random states; None without tokens."""
    tokens = int(some.sum())
    values = [perplexity(float(nll[some].sum()), tokens) for nll in nlls if tokens]
    return finite(float(np.mean(values))) if values else None


def parameters_of(model: Path) -> int:
    """Return the number of parameters of a saved model, without reading them.

    Tensors of integers are tables of the training text, which nothing trains.
    """
    with safe_open(model / "weights.safetensors", "numpy") as tensors:
        slices = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118
    return sum(math.prod(t.get_shape()) for t in slices.values() if t.get_dtype().startswith("F"))


def code_lengths(tree: Tree, counts: Int64) -> list[LengthCount]:
    """Return the number of codes and of tokens per code length, without unused lengths.

    A label's count is divided evenly among its codes.
    """
    codes = Codes(tree, cache_limit=0)
    # (codes,) tokens of each code; the one label of a tree without nodes has no code
    share = (counts / np.maximum(tree.codes_per_label, 1))[codes.label]
    number, tokens = np.bincount(codes.length), np.bincount(codes.length, share)
    return [
        LengthCount(length=length, codes=int(number[length]), tokens=float(tokens[length]))
        for length in np.flatnonzero(number).tolist()
    ]


def at_epoch_limit(results: Sequence[RunResult]) -> int:
    """Count the runs that stopped at the limit of epochs, before they had converged.

    Runs of models whose schedule ends with their epochs, as word2vec's do, do not count.
    """
    return sum(
        kind_of(result.options).model.converges
        and not result.converged
        and not result.out_of_time
        and 0 < result.options["epochs"] == len(result.epochs or [])
        for result in results
    )


def spreads(perplexities: Sequence[Mapping[str, float | None]]) -> dict[Scored, Spread]:
    """Return mean and sample standard deviation of the perplexities by split, over seeds."""
    return {split: _spread([of_run[split] for of_run in perplexities]) for split in SCORED}


def _spread(values: Sequence[float | None]) -> Spread:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Spread(mean=None, sd=None, n=len(values))
    return Spread(
        mean=statistics.fmean(known),
        sd=statistics.stdev(known) if len(known) > 1 else None,
        n=len(known),
    )


def log_normaliser(results: Sequence[RunResult]) -> NormaliserFigures | None:
    """Return the means over random states; None for layers that are normalised by design."""
    figures = [result.log_normaliser for result in results]
    known = [one for one in figures if one is not None]
    if not known or len(known) < len(figures):
        return None
    names = [field.name for field in fields(NormaliserFigures)]
    return NormaliserFigures(
        **{name: _spread([getattr(one, name) for one in known]).mean for name in names}
    )


def mean_seconds(costs: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    """Return the mean seconds of each step over random states; None if some are not known."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    return {step: statistics.fmean(cost[step] for cost in known) for step in known[0]}


def seconds_from_text(
    steps: Mapping[str, Mapping[str, float] | None], flat: str | None
) -> dict[str, SecondsFromText | None]:
    """Add up the seconds of the steps of every row, and divide those of the flat row by them.

    `steps` has the seconds of the steps of each row by their names in `SecondsFromText`, None if
    not known; `flat` is the name of the flat row.
    """
    total = {name: sum(seconds.values()) for name, seconds in steps.items() if seconds is not None}
    level = None if flat is None else total.get(flat)
    return {
        name: None
        if seconds is None
        else SecondsFromText(seconds=total[name], **seconds, speed_up=level and level / total[name])
        for name, seconds in steps.items()
    }


def speed_up(measured: Mapping[str, Sequence[float]], name: str, flat: str) -> float:
    """Return how many times as fast as the flat row a row is: the quotient of the medians."""
    return statistics.median(measured[name]) / statistics.median(measured[flat])


@dataclass(frozen=True)
class Bands:
    """Bands of training counts, and the index of each test token's band, int64 (T,)."""

    bands: list[Band]
    band_of_token: Int64

    def perplexities(self, nlls: Sequence[Float64]) -> list[float | None]:
        """Return the mean perplexity in each band over random states; None without tokens.

        `nlls` has the nll in nats of every test token, a float64 array (T,) per random state.
        """
        bands = range(len(self.bands))
        return [mean_perplexity(nlls, self.band_of_token == band) for band in bands]


def frequency_bands(splits: Splits) -> Bands:
    """Group the words of the vocabulary by powers of ten of their training counts.

    Counts are 0, 1 to 9, 10 to 99 and so on; test tokens out of the vocabulary are a band of
    their own. Bands without a word and without a token are left out.
    """
    vocabulary = splits.train.vocabulary
    # (V,) band of each word
    band_of_word = np.searchsorted(_BAND_STARTS, splits.train.counts, side="right")
    # (T,) band of each test token
    ids = splits.test.with_vocabulary(vocabulary).ids(slice(None))
    outside = len(_BAND_STARTS) + 1
    band_of_token = np.where(ids < 0, outside, band_of_word[ids])
    words = np.bincount(band_of_word, minlength=outside + 1)
    tokens = np.bincount(band_of_token, minlength=outside + 1)
    used = np.flatnonzero(words + tokens)
    bands = [
        Band(**_bounds(int(band)), words=int(words[band]), tokens=int(tokens[band]))
        for band in used
    ]
    return Bands(bands, np.searchsorted(used, band_of_token))


def _bounds(band: int) -> dict[str, Any]:
    if band > len(_BAND_STARTS):
        return {"least": None, "most": None}
    return {"least": 10 ** (band - 1) if band else 0, "most": 10**band - 1}


def chosen_from(rows: Sequence[Row], choice: Choice, noun: str) -> str:
    """What a choice is made from; among trees, flat softmaxes are counted by themselves."""
    flat = sum(row.tree is not None and row.tree.nodes == 1 and row.seen is None for row in rows)
    if noun != "tree" or not flat:
        return plural(choice.among, noun)
    softmaxes = "the flat softmax" if flat == 1 else f"{flat} flat softmaxes"
    trees = choice.among - flat
    return f"{plural(trees, noun)} and {softmaxes}" if trees else softmaxes


def choice(rows: Sequence[Row], within: float = TOLERANCE) -> Choice | None:
    """Choose the fastest of the rows whose validation perplexity is nearly the lowest.

    A row is as fast as the fastest unless it was slower in every round that they took turns in. Of
    rows as fast, the one of lower validation perplexity is chosen, then the one of fewer scores per
    target, then the first. Validation decides, so that the choice does not lower the test
    perplexity of the chosen row. Baselines, and rows whose test split was read before, take no
    part.

    Parameters
    ----------
    rows : sequence of Row
    within : float, default 0.03
        How far above the lowest validation perplexity the chosen row may be, as a share of it.

    Returns
    -------
    Choice or None
        Without its comparison to the rival; None without any row to choose.
    """
    trained = [row for row in rows if row.kind != "baseline" and row.seen is None]
    if not trained:
        return None
    best = min(trained, key=_preference)
    limit = (1 + within) * best.validation_perplexity
    near = [row for row in trained if row.validation_perplexity <= limit]
    fastest = max(near, key=lambda row: row.tokens_per_second or 0.0)
    tied = [row for row in near if not _is_slower(row, fastest)]
    chosen = min(tied, key=_preference)
    others = [row for row in trained if row is not chosen]
    rival = min(others, key=_preference, default=None)
    return Choice(
        by="valid",
        among=len(trained),
        best=best.name,
        within=within,
        chosen=chosen.name,
        tied=[row.name for row in tied if row is not chosen],
        rival=None if rival is None else rival.name,
    )


def _preference(row: Row) -> tuple[float, float]:
    return row.validation_perplexity, row.scores_per_target


def _is_slower(row: Row, fastest: Row) -> bool:
    """Return whether a row was slower than the fastest in every round; one without speeds is."""
    if row is fastest:
        return False
    if not row.speed_rounds or not fastest.speed_rounds:
        return (row.tokens_per_second or 0.0) < (fastest.tokens_per_second or 0.0)
    pairs = zip(row.speed_rounds, fastest.speed_rounds, strict=True)
    return all(speed < highest for speed, highest in pairs)
