"""Choice of a learning rate: each trains for some seconds, and the best continues."""

from __future__ import annotations

import math
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

from hstree._files import read_json, write_json
from hstree.data.corpus import Corpus
from hstree.errors import DivergenceError, OptionError
from hstree.training.checkpoints import checkpoint_key

#: Fraction of the first seconds in which the learning rates are compared.
RATES_FRACTION = 1 / 2


def parse_rates(text: str) -> list[float]:
    """Return the learning rates in a text such as "0.03,0.1,0.3"; raise OptionError for others."""
    rates: list[float] = []
    with suppress(ValueError):
        rates = [float(rate) for rate in text.replace(",", " ").split()]
    if text and not (rates and all(rate > 0 and math.isfinite(rate) for rate in rates)):
        reason = f'is {text!r}; it must be numbers above 0, such as "0.03,0.1,0.3"'
        raise OptionError.about("rates", reason)
    return rates


def train_best_rate(model: Any, train: Corpus, valid: Corpus, folder: Path) -> Any:
    """Return a copy of a model, trained with the learning rate that is best on validation.

    Each rate trains for an equal part of the first seconds, and the best also for the rest. The
    choice and the checkpoints are saved in a folder in `folder`, named by a hash of all
    dependencies, so that paused training continues with it. If training was interrupted, the copy
    continues from there.
    """
    rates = parse_rates(model.rates)
    seconds = RATES_FRACTION * model.seconds / len(rates)

    changing = {"epochs", "seconds", "learning_rate"}
    config = {name: value for name, value in model.config().items() if name not in changing}
    key = checkpoint_key(model.spec.config(), config, 0, (train, valid))  # batches are in config
    folder /= f"rates-{key[:16]}"
    file = folder / "choice.json"

    if not file.exists():
        # The lowest validation perplexity with each rate
        perplexities: dict[float, float] = {}
        for rate in rates:
            trial = _copy(model, rate, seconds)
            with suppress(DivergenceError):  # the rate is too high
                trial.train_once(train, valid, folder, pauses=True)
            if trial.history_.interrupted:
                return trial
            scores = [epoch.valid or math.inf for epoch in trial.history_.epochs]
            perplexities[rate] = min(scores, default=math.inf)
        best_rate = min(perplexities, key=perplexities.__getitem__)
        if math.isinf(perplexities[best_rate]):
            raise DivergenceError(
                f"the training diverged with each of the rates {model.rates}; give lower rates"
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_json(file, {"rate": best_rate, "others": seconds * (len(rates) - 1)})

    # The best rate continues from its checkpoint
    choice = read_json(file, dict[str, float], "remove it")
    best = _copy(model, choice["rate"], model.seconds - choice["others"])
    best.train_once(train, valid, folder, pauses=True)
    best.history_.preparation += choice["others"]
    return best


def _copy(model: Any, learning_rate: float, seconds: float) -> Any:
    """Return a copy of an untrained model with another learning rate and budget of seconds."""
    other = copy(model)
    other.learning_rate = learning_rate
    other.seconds = seconds
    return other
