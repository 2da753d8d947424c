"""Results of `evaluate`, `bootstrap` and `compare`, printed as tables and lists of values."""

from collections.abc import Sequence
from pathlib import Path

from hstree._text import format_number, plural
from hstree.experiments.compare import Evaluation
from hstree.experiments.results import SAMPLED, Comparison
from hstree.experiments.statistics import BLOCK, CONFIDENCE, FEWEST
from hstree.models import config_of, kind_of
from hstree.training.trainer import epoch_table
from hstree_cli.tables import Facts, facts, table
from hstree_cli.terminal import say

#: Columns of a comparison that a narrow terminal shows first.
FIRST = (
    "valid",
    "total s",
    "test",
    "vs flat",
    "vs flat, same layer",
    "speed vs flat",
    "ln Z",
    "one-word speed vs flat",
    "top-10 speed vs flat",
)

# Evaluations


def print_evaluation(evaluation: Evaluation, files: Sequence[Path]) -> None:
    """Print the epochs, results, conditions and written files of `hstree evaluate`."""
    comparison = evaluation.comparison
    candidate = comparison.candidates[0]
    epochs = candidate.jobs[0].epochs
    if epochs:
        epochs_table = epoch_table(epochs)
        say(table(epochs_table.columns, epochs_table.rows))

    # Why the training ended, and which weights were scored
    ended = "interrupted" if evaluation.interrupted else f"after {plural(len(epochs), 'epoch')}"
    validated = [epoch for epoch in epochs if epoch.valid is not None]
    if validated and not evaluation.interrupted:
        best = min(validated, key=lambda epoch: epoch.valid or 0.0)
        ended += f"; the weights of epoch {best.epoch} are kept"

    # The table of a comparison with one candidate, and values that the table lacks
    _print_table(comparison)
    perplexities = {
        "training sample": evaluation.train,
        "test without OOV": candidate.perplexity["test_without_oov"].mean,
        "unigram, test": comparison.unigram,
    }
    lines = [(name, f"perplexity {format_number(value)}") for name, value in perplexities.items()]
    lines += _footnotes(comparison)
    lines += [("ended", ended), *_conditions(comparison)]
    say(facts([*lines, *(("written", str(file)) for file in files)]))


# Comparisons


def print_comparison(comparison: Comparison, page: Path, *, conditions: bool = True) -> None:
    """Print the recommendation, the table, its footnotes, and the path of the page.

    With `conditions`, also print the conditions of all results.
    """
    say("\n" + "\n".join(comparison.recommendation))
    _print_table(comparison, first=FIRST)
    lines = _footnotes(comparison)
    lines += _conditions(comparison) if conditions else [_oov_rates(comparison)]
    say(facts([*lines, ("page", f"{page}: open it in a browser")]))


def _print_table(comparison: Comparison, first: Sequence[str] = ()) -> None:
    """Print the table of a comparison, with the recommended candidate in bold."""
    shown = comparison.table()
    bold = None if comparison.choice is None else comparison.choice.chosen
    say(table(shown.columns, shown.rows, ["candidate"], bold=bold, first=first))


def _footnotes(comparison: Comparison) -> Facts:
    """Return the meanings of the marks in the table."""
    candidates = comparison.candidates
    lines: Facts = []
    if any(candidate.at_epoch_limit for candidate in candidates):
        lines.append(("*", "stopped at the epoch limit while validation perplexity was falling"))
    lines += [(SAMPLED, sentence) for sentence in comparison.samples()]
    if any(candidate.perplexity["test"].sd is not None for candidate in candidates):
        seeds = plural(len(comparison.seeds), "seed")
        lines.append(("±", f"sample standard deviation over {seeds}"))
    # All candidates are compared with flat on the same blocks
    blocks = next((candidate.to_flat.blocks for candidate in candidates if candidate.to_flat), None)
    if blocks is not None and blocks < FEWEST:
        lines.append(("vs flat", f"no interval: fewer than {FEWEST} blocks of {BLOCK:,} tokens"))
    elif blocks is not None:
        interval = f"{CONFIDENCE:.0%} interval over {blocks:,} blocks of test tokens"
        lines.append(("vs flat", f"difference in test perplexity, with its {interval}"))
    lines += [("test lines seen", sentence) for sentence in comparison.read_before()]
    return lines


def _oov_rates(comparison: Comparison) -> tuple[str, str]:
    """Return the fraction of out-of-vocabulary tokens in each split."""
    rates = [f"{split} {comparison.oov_rate(split):.2%}" for split in comparison.tokens]
    return "out of vocabulary", f"{', '.join(rates)} of the tokens"


def _conditions(comparison: Comparison) -> Facts:
    """Return the text, the vocabulary, the model and the stopping rule of a comparison."""
    vocabulary = comparison.vocabulary
    options = config_of(comparison.options)
    model, training = kind_of(options).model.describe(options)
    sizes = [f"{split} {n:,}" for split, n in comparison.tokens.items()]
    names = {str(source.get("name")) for source in comparison.corpus.values()}
    return [
        ("perplexity", f"per {comparison.predicts}, over all tokens"),
        ("text", ", ".join(sorted(names))),
        ("tokens", ", ".join(sizes)),
        _oov_rates(comparison),
        ("vocabulary", f"{vocabulary.size:,} words, sha256 {vocabulary.sha256[:16]}"),
        ("model", model),
        ("training", f"{comparison.stop}; {training}"),
        ("seeds", ", ".join(map(str, comparison.seeds))),
    ]
