"""The results of `evaluate`, `bootstrap` and `compare` as tables and name-value lines."""

from collections.abc import Sequence
from pathlib import Path

from hstree._text import figure, plural
from hstree.experiments.compare import Evaluation
from hstree.experiments.results import SAMPLED, Comparison
from hstree.experiments.significance import BLOCK, CONFIDENCE, FEWEST
from hstree.models import config_of, kind_of
from hstree.training.trainer import table_of
from hstree_cli.tables import Facts, facts, table
from hstree_cli.terminal import say

#: Columns of a comparison that a narrow terminal has before others.
FIRST = (
    "valid",
    "s from text",
    "test",
    "ratio to flat",
    "to flat alike",
    "times flat",
    "ln Z",
    "one word, times flat",
    "top 10, times flat",
)

# Evaluations


def print_evaluation(evaluation: Evaluation, files: Sequence[Path]) -> None:
    """Print the epochs of `hstree evaluate`, its figures, their conditions and written files."""
    comparison, candidate = evaluation.comparison, evaluation.comparison.candidates[0]
    epochs = candidate.jobs[0].epochs
    if epochs:
        source = table_of(epochs)
        say(table(source.columns, source.rows))
    ended = "interrupted" if evaluation.interrupted else f"after {plural(len(epochs), 'epoch')}"
    validated = [epoch for epoch in epochs if epoch.valid is not None]
    if validated and not evaluation.interrupted:
        best = min(validated, key=lambda epoch: epoch.valid or 0.0)
        ended += f"; the weights of epoch {best.epoch} are kept"
    shown, choice = comparison.table(), comparison.choice
    say(table(shown.columns, shown.rows, ["candidate"], bold=choice.chosen if choice else None))
    scored = {
        "training sample": evaluation.train,
        "test without OOV": candidate.perplexity["test_without_oov"].mean,
        "unigram, test": comparison.unigram,
    }
    lines = [(name, f"perplexity {figure(value)}") for name, value in scored.items()]
    lines += [(SAMPLED, sentence) for sentence in comparison.samples()]
    lines += [("ended", ended), *_conditions(comparison)]
    say(facts([*lines, *(("written", str(file)) for file in files)]))


# Comparisons


def print_comparison(comparison: Comparison, page: Path, *, conditions: bool = True) -> None:
    """Print which candidate to take, the table, what qualifies its figures, and its page.

    With `conditions` it also prints what all figures depend on.
    """
    candidates, shown, choice = comparison.candidates, comparison.table(), comparison.choice
    say("\n" + "\n".join(comparison.recommendation))
    bold = choice.chosen if choice else None
    say(table(shown.columns, shown.rows, ["candidate"], bold=bold, first=FIRST))
    blocks = next((candidate.to_flat.blocks for candidate in candidates if candidate.to_flat), None)
    lines: Facts = []
    if any(candidate.at_epoch_limit for candidate in candidates):
        lines.append(("*", "stopped at the limit of epochs, while validation was still falling"))
    lines += [(SAMPLED, sentence) for sentence in comparison.samples()]
    if any(candidate.perplexity["test"].sd is not None for candidate in candidates):
        lines.append(
            ("±", f"sample standard deviation over {plural(len(comparison.seeds), 'seed')}")
        )
    if blocks is not None and blocks < FEWEST:
        lines.append(("ratios", f"no interval: fewer than {FEWEST} blocks of {BLOCK:,} tokens"))
    elif blocks is not None:
        over = f"{CONFIDENCE:.0%} interval over {blocks:,} blocks of test tokens"
        lines.append(("ratios", f"of test perplexities, with their {over}"))
    lines += [("read before", sentence) for sentence in comparison.read_before()]
    lines += _conditions(comparison) if conditions else [_oov_rates(comparison)]
    say(facts([*lines, ("page", f"{page}: open it in a browser")]))


def _oov_rates(comparison: Comparison) -> tuple[str, str]:
    rates = [f"{split} {comparison.oov_rate(split):.2%}" for split in comparison.tokens]
    return "out of vocabulary", f"{', '.join(rates)} of the tokens"


def _conditions(comparison: Comparison) -> Facts:
    """Return the text, the words, the model and the rule that all figures depend on."""
    tokens, words = comparison.tokens, comparison.vocabulary
    options = config_of(comparison.options)
    model, training = kind_of(options).model.describe(options)
    sizes = [f"{split} {n:,}" for split, n in tokens.items()]
    sources = {str(source.get("name")) for source in comparison.corpus.values()}
    return [
        ("perplexity", f"of each {comparison.predicts}, <eos> and <unk> included"),
        ("text", ", ".join(sorted(sources))),
        ("tokens", ", ".join(sizes)),
        _oov_rates(comparison),
        ("vocabulary", f"{words.size:,} words, sha256 {words.sha256[:16]}"),
        ("model", model),
        ("training", f"{comparison.stop}; {training}"),
        ("seeds", ", ".join(map(str, comparison.seeds))),
    ]
