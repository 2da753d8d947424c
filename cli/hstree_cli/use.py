"""Commands that use trained models: predict, sample and score."""

import csv
import io
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import Output, check_outputs, written
from hstree_cli.tables import facts, shortened, table
from hstree_cli.terminal import printable, say, showing_progress, warn

if TYPE_CHECKING:
    from hstree.data.vocabulary import Vocabulary
    from hstree.models import BaseModel, Ensemble
    from hstree.models.streams import ScoredTokens

#: Maximum number of contexts in a batch.
MAX_CONTEXTS = 256
#: Maximum number of scores in a batch: contexts times words.
MAX_SCORES = 1 << 24


def predict(
    model: opt.ModelFolder,
    context: Annotated[
        str,
        argument(
            metavar='"TEXT"',
            help="Words before the predicted word, or - to read lines from standard input.",
        ),
    ],
    k: Annotated[int, option("-k", "Number of words.", "K", min=1)] = 10,
    also: opt.With = None,
    json: opt.JsonFile = None,
) -> None:
    """Print the most probable next words, with their probabilities.

    The search is exact for all output layers. TEXT is the beginning of a line; if it is
    long, the model uses only the last words. If the training corpus was in lower case, TEXT
    must be too. A cbow or skipgram model predicts words that occur near the words in TEXT.

    With -, each line of standard input is one TEXT, answered as it arrives. The output is
    tab-separated, with a header and the columns line, rank, word and probability.
    """
    from hstree._files import write_json
    from hstree.kernels import numpy_only
    from hstree_cli.inputs import load_models, split_words, warn_of_unknown

    check_outputs(Output("--json", json), reads=[model, *(also or ())])
    answers: list[dict[str, Any]] = []
    failure = None
    # Compiling would take longer than one search.
    with showing_progress(), numpy_only():
        loaded = load_models(model, also)
        if context == "-":
            failure = _print_parts(
                _answer_lines(loaded, k, answers, is_kept=json is not None),
                is_only_output=json is None,
            )
        else:
            words = split_words(context)
            unknown = warn_of_unknown(words, loaded.vocabulary)
            (predicted,) = loaded.predict([words], k)
            answers.append(_answer(words, unknown, predicted))
    # An error of standard output is raised after the JSON file is written
    with written((json, lambda path: write_json(path, {"k": k, "predictions": answers}))):
        if failure is not None:
            raise failure
        if context == "-":
            return
        title = "next word" if loaded.is_language_model else "word"
        lines = [(shortened(word), f"{probability:.6f}") for word, probability in predicted]
        before = Text(" ".join(map(shortened, words)) or "(no word)", style="bold")
        say(Group(before, table((title, "probability"), lines, (title,))))


def _answer(
    words: list[str], unknown: list[str], predicted: list[tuple[str, float]]
) -> dict[str, Any]:
    """Return the answer to a context as JSON values."""
    answers = [{"word": word, "probability": probability} for word, probability in predicted]
    return {"context": words, "unknown": unknown, "words": answers}


def _answer_lines(
    model: "BaseModel | Ensemble", k: int, answers: list[dict[str, Any]], *, is_kept: bool
) -> Iterator[str]:
    """Answer the lines of standard input as they arrive; yield tab-separated lines.

    If `is_kept`, the answers are also appended to `answers`.
    """
    from hstree._text import plural
    from hstree.data.sources import STANDARD_INPUT, standard_input_blocks
    from hstree.data.vocabulary import UNK
    from hstree.models.streams import TextStream

    vocabulary = model.vocabulary
    # Some layers compute the scores of all words for each context in a batch
    batch_size = max(1, min(MAX_CONTEXTS, MAX_SCORES // len(vocabulary)))
    stream = TextStream(STANDARD_INPUT, standard_input_blocks())
    yield "line\trank\tword\tprobability\n"
    number = 0
    n_unknown = 0
    for contexts in stream.lines(batch_size):
        rows: list[tuple[object, ...]] = []
        for words, predicted in zip(contexts, model.predict(contexts, k), strict=True):
            number += 1
            unknown = list(dict.fromkeys(word for word in words if word not in vocabulary))
            n_unknown += len(unknown)
            for rank, (word, probability) in enumerate(predicted, 1):
                rows.append((number, rank, word, f"{probability:.6f}"))
            if is_kept:
                answers.append(_answer(words, unknown, predicted))
        yield _tsv(rows)
    if n_unknown:
        counted = plural(n_unknown, "word")
        warn(f"not in the vocabulary of the model, read as {UNK}: {counted} in the input")


def _print_parts(parts: Iterable[str], *, is_only_output: bool) -> OSError | None:
    """Print the parts of a text as they arrive, with control characters escaped.

    If standard output is the only output, its error is raised. Otherwise the remaining parts are
    still computed, and the error is returned.
    """
    failure = None
    for part in parts:
        try:
            if failure is None:
                sys.stdout.write(printable(part, keep="\t\n"))
                sys.stdout.flush()
        except OSError as error:
            if is_only_output:
                raise
            failure = error
    return failure


def _tsv(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as tab-separated values, with quotes around cells that need them."""
    text = io.StringIO(newline="")
    csv.writer(text, "excel-tab", lineterminator="\n").writerows(rows)
    return text.getvalue()


def sample(
    model: opt.ModelFolder,
    words: Annotated[int, option("--words", "Number of words.", "N", min=0, max=10**7)] = 50,
    seed: opt.Seed = 0,
    context: Annotated[
        str, option("--context", "Words before the sampled text; they are not printed.", "TEXT")
    ] = "",
    also: opt.With = None,
) -> None:
    """Sample a text from a model, word by word, and print it.

    <eos> ends a line. Without --context, the text starts at the beginning of a line. Control
    characters in words are escaped.
    """
    from hstree.data.vocabulary import EOS
    from hstree.errors import OptionError
    from hstree_cli.inputs import load_models, split_words, warn_of_unknown

    with showing_progress():
        loaded: Any = load_models(model, also)
        if not loaded.is_language_model:
            raise OptionError(
                f"{model} is a {loaded.name} model, which cannot sample text; use a language model"
            )
        before = split_words(context)
        warn_of_unknown(before, loaded.vocabulary)
        sampled = loaded.sample(words, before, random_state=seed)
    # Words contain no white space.
    text = re.sub(" ?\n ?", "\n", " ".join("\n" if word == EOS else word for word in sampled))
    typer.echo(printable(text, keep="\n"), nl=bool(text) and not text.endswith("\n"))


def score(
    model: opt.ModelFolder,
    file: Annotated[str, argument(metavar="FILE", help=f"Text: {opt.CORPUS_KINDS}.")],
    also: opt.With = None,
    per_word: Annotated[bool, option("--per-word", "Print one line per word.")] = False,
    output: Annotated[
        Path | None, option("--output -o", "Write the lines to this file.", "OUT")
    ] = None,
    json: opt.JsonFile = None,
    as_text: opt.AsText = False,
) -> None:
    """Print the natural log-probability of each line of a text, and a summary.

    Each output line is log-prob<TAB>words<TAB>OOV<TAB>text; words counts the <eos> at the
    end of the line. Words that are not in the vocabulary are scored as <unk>. The context of
    a word can include words of earlier lines. Logarithms are natural: divide by 2.302585 for
    base 10, as in ARPA tools.

    With --per-word, the output is tab-separated, with a header, one line per token, and the
    columns line, position, word, log_prob and is_oov. If it is written to standard output,
    the summary is written to standard error. Standard input is scored in parts: the first
    lines are printed after a million tokens, or at its end. Control characters in words are
    escaped on standard output, but not in the file of -o.
    """
    from hstree import progress
    from hstree._files import replacing, write_json
    from hstree.data.sources import STANDARD_INPUT, standard_input_blocks
    from hstree.data.splits import MANY_OOV
    from hstree.errors import FileFormatError, InputError
    from hstree.kernels import numpy_for_short_runs
    from hstree.models.streams import TextStream, scored_corpus, scored_stream
    from hstree_cli.inputs import load_models, read_with_labels

    reads = [file, model, *(also or ())]
    check_outputs(Output("-o", output), Output("--json", json), reads=reads)
    with showing_progress():
        loaded = load_models(model, also)
        if loaded.vocabulary.eos is None:
            raise InputError(
                f"the labels of {model} do not include <eos>, so lines cannot be scored; in "
                "Python, load_model(...).score(text).to_frame() gives the scores of the words"
            )
        # Standard input can be read only once, so it is scored while it arrives
        text: Any
        if file == "-":
            text = TextStream(STANDARD_INPUT, standard_input_blocks())
            n_tokens = text.look_ahead()
            tokens = scored_stream(loaded, text)
        else:
            text = read_with_labels(loaded.spec.labels, file, text=as_text)
            n_tokens = len(text)
            tokens = scored_corpus(loaded, text)
            _warn_of_seen(text, loaded)

        # `total` grows while lines are printed or written; NumPy scores a short text
        total = _ScoreSum()
        lines = (_word_lines if per_word else _text_lines)(total.add_up(tokens, text.name))
        failure: Exception | None = None
        with numpy_for_short_runs(n_tokens):
            try:
                if output is None:
                    failure = _print_parts(lines, is_only_output=json is None)
                else:
                    with replacing(output) as opened:
                        opened.writelines(part.encode() for part in lines)
            except FileFormatError as error:
                if json is None:
                    raise
                failure = error  # raised below, after the JSON file is written
                deque(total.add_up(tokens, text.name), maxlen=0)

        # The hash of standard input is known at its end
        if file == "-":
            _warn_of_seen(text, loaded)
        results = {"predicts": loaded.predicts, **total.results(loaded.vocabulary, text.source)}
        if file == "-" and results["oov"] > MANY_OOV * results["tokens"]:
            warn(
                f"{results['oov']:,} of the {results['tokens']:,} tokens of {text.name} are not "
                "in the vocabulary of the model, and are scored as <unk>"
            )
        _warn_of_unk(results, loaded)

        with written((json, lambda path: write_json(path, results))):
            if failure is not None:
                raise failure
            if per_word and output is None:  # standard output holds only the table
                for line in _summary(results).splitlines():
                    progress.say(line)
            else:
                say(_summary(results))


def _warn_of_seen(text: Any, model: "BaseModel | Ensemble") -> None:
    """Warn of lines of a text that a model was trained on, or that its tree was built from."""
    from hstree.data.splits import read_before

    # One warning is enough
    for single in getattr(model, "models", [model]):
        reader = "layer" if single.spec.tree is None else "tree"
        provenance = {reader: single.spec.provenance}
        if seen := read_before(text, training=single.texts) or read_before(text, **provenance):
            warn(seen)
            return


def _warn_of_unk(scores: Mapping[str, Any], model: "BaseModel | Ensemble") -> None:
    """Warn if unknown words were scored as an ``<unk>`` that has no training tokens."""
    from hstree.data.vocabulary import UNK, unk_min_count

    vocabulary = model.vocabulary
    counts = vocabulary.counts
    if not scores["oov"] or vocabulary.unk is None or counts[vocabulary.index(vocabulary.unk)]:
        return
    warn(
        f"{scores['oov']:,} of {scores['tokens']:,} tokens are scored as {UNK}, which did not "
        "occur in training, so the perplexity is not meaningful; train with a min_count "
        f"(--min-count) of {unk_min_count(vocabulary, counts)} or more"
    )


@dataclass
class _ScoreSum:
    """Sums over the scored tokens of a text."""

    nll: float = 0.0
    nll_of_oov: float = 0.0
    lines: int = 0
    tokens: int = 0
    oov: int = 0

    def add_up(self, parts: "Iterator[ScoredTokens]", name: str) -> "Iterator[ScoredTokens]":
        """Add the scored tokens of the text `name` to the sums, and yield them."""
        from hstree.errors import explained

        with explained(f"read {name}"):
            for part in parts:
                self.nll += float(part.nll.sum())
                self.nll_of_oov += float(part.nll[part.oov].sum())
                self.lines += int(part.is_end.sum())
                self.tokens += len(part.words)
                self.oov += int(part.oov.sum())
                yield part

    def results(self, vocabulary: "Vocabulary", source: dict[str, Any]) -> dict[str, Any]:
        """Return the score of the text as JSON values, with the text and the vocabulary."""
        from hstree.data.text_score import TextScore

        score = TextScore(self.nll, self.tokens, self.nll_of_oov, self.oov)
        return {
            "log_prob": -score.nll,
            "log_prob_of_oov": -score.nll_of_oov,
            "base": "e",
            "perplexity": score.perplexity,
            "perplexity_without_oov": score.perplexity_without_oov,
            "lines": self.lines,
            "tokens": score.tokens,
            "oov": score.oov,
            "vocabulary": {"size": len(vocabulary), "sha256": vocabulary.sha256},
            "corpus": dict(source),
        }


def _word_lines(parts: "Iterator[ScoredTokens]") -> Iterator[str]:
    """Yield a table of tokens as tab-separated lines, many at a time."""
    yield "line\tposition\tword\tlog_prob\tis_oov\n"
    line = 1
    position = 1
    for words, is_end, nll, oov in parts:
        rows: list[tuple[object, ...]] = []
        values = zip(words, is_end.tolist(), nll.tolist(), oov.tolist(), strict=True)
        for word, ends_line, cost, unknown in values:
            rows.append((line, position, word, f"{-cost:.6f}", unknown))
            position += 1
            # <eos> is the last token of its line
            if ends_line:
                line += 1
                position = 1
        yield _tsv(rows)


def _text_lines(parts: "Iterator[ScoredTokens]") -> Iterator[str]:
    """Yield one line per line of a text, many at a time; each line ends with an <eos>."""
    # Words, nll and number of OOV tokens of the unfinished line
    words: list[str] = []
    cost = 0.0
    unknown = 0
    for part in parts:
        nll = part.nll.tolist()
        oov = part.oov.tolist()
        stops = (part.is_end.nonzero()[0] + 1).tolist()
        lines: list[str] = []
        # The last segment is unfinished or empty
        for start, stop in pairwise([0, *stops, len(nll)]):
            words += part.words[start:stop]
            cost += sum(nll[start:stop])
            unknown += sum(oov[start:stop])
            if len(lines) < len(stops):
                lines.append(f"{-cost:.6f}\t{len(words)}\t{unknown}\t{' '.join(words[:-1])}\n")
                words = []
                cost = 0.0
                unknown = 0
        yield "".join(lines)


def _summary(results: dict[str, Any]) -> str:
    """Return the summary of a scored text."""
    from hstree._text import format_number, plural

    tokens = results["tokens"]
    oov = results["oov"]
    words = results["vocabulary"]
    lines = plural(results["lines"], "line")
    return facts(
        [
            ("score per", results["predicts"]),
            (
                "log-probability",
                f"{format_number(results['log_prob'])} in total, natural logarithm",
            ),
            ("perplexity", f"{format_number(results['perplexity'])} with OOV"),
            ("", f"{format_number(results['perplexity_without_oov'])} without"),
            ("tokens", f"{tokens:,} in {lines}, including one <eos> per line"),
            ("OOV", f"{oov:,} ({oov / tokens:.2%}), scored as <unk>"),
            ("vocabulary", f"{words['size']:,} words, sha256 {words['sha256'][:16]}"),
        ]
    )
