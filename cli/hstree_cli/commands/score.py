"""`hstree score`: log-probabilities of the lines or words of a text."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.arguments import check_model, load_models
from hstree_cli.options import (
    CORPUS_KINDS,
    JsonFile,
    ModelFolder,
    Quiet,
    With,
    argument,
    option,
)
from hstree_cli.outputs import check_file, written
from hstree_cli.tables import Facts, count, facts, figure, percent, vocabulary_line
from hstree_cli.terminal import printable, say, showing_progress, warn

if TYPE_CHECKING:
    from hstree._typing import Bool, Float64
    from hstree.data.corpus import Corpus

    Batches = Iterable[tuple[Float64, Bool]]

#: End of the line of a word that is out of the vocabulary.
_OOV = "\tOOV"


def score(
    ctx: typer.Context,
    model: ModelFolder,
    file: Annotated[str, argument("FILE", f"The text: {CORPUS_KINDS}; - for stdin.")],
    also: With = None,
    per_word: Annotated[
        bool, option("--per-word", "Score each word instead of each line.")
    ] = False,
    output: Annotated[
        Path | None, option("--output -o", "Write the lines to this file.", "OUT")
    ] = None,
    json: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Print the natural log-probability of each line of a text, and a summary.

    Lines are log-prob<TAB>words<TAB>OOV<TAB>text, the <eos> at the line's end
    counted; with --per-word they are word<TAB>log-prob, and <TAB>OOV if the word is
    not in the vocabulary and scored as <unk>. Contexts run over line ends.
    Logarithms are natural: divide by 2.302585 for base 10, as in ARPA tools.
    Control characters in words are printed escaped, but not in a file named by -o.
    """
    from hstree._files import write_json
    from hstree_cli.inputs import read_as

    check_model(ctx, model, file)
    reads = [file, model, *(also or ())]
    check_file(output, "-o", reads=reads)
    check_file(json, "--json", reads=reads, beside=[output])
    # On a terminal the printed lines themselves show the progress.
    printing = output is None and sys.stdout.isatty()
    with showing_progress(quiet or printing), _named(file) as source:
        loaded = load_models(model, also)
        text = read_as(loaded.spec.labels, source)
        if (seen := _read_before(loaded, text)) is not None:
            warn(seen)
        total = _Total()
        batches = total.of(loaded.scored(text))
        lines = _word_lines(text, batches) if per_word else _text_lines(text, batches)
        failure = _write_lines(lines, output)
        if failure is not None and json is None:
            raise failure
        for _ in lines:  # after a failure, so that the sums are complete
            pass
        results = {"predicts": loaded.predicts, **total.as_dict(text)}
    with written((json, lambda path: write_json(path, results))):
        if failure is not None:
            raise failure
        say(facts(_summary(results)))


def _read_before(model: Any, text: Corpus) -> str | None:
    """Name lines of the text that a model was trained on, or its tree built from."""
    from hstree.data.splits import read_by_layer, read_by_training

    for one in getattr(model, "models", [model]):
        what = "vocabulary" if one.spec.tree is None else "tree"
        read = read_by_training(one.texts, text) or read_by_layer(
            one.spec.made_from, text, what=what
        )
        if read is not None:
            return read
    return None


def _write_lines(lines: Iterator[str], output: Path | None) -> Exception | None:
    """Write lines to a file or to standard output; return the error that prevented it."""
    from hstree._files import replacing
    from hstree.errors import FileFormatError

    try:
        if output is None:
            sys.stdout.writelines(printable(line, keep="\t\n") for line in lines)
        else:
            with replacing(output) as file:
                file.writelines(line.encode() for line in lines)
    except (OSError, FileFormatError) as error:
        return error
    return None


@contextmanager
def _named(source: str) -> Iterator[str]:
    """Copy standard input to a file while the body runs; it is read more than once."""
    from hstree._files import temporary_folder

    if source != "-":
        yield source
        return
    with temporary_folder() as folder:
        path = folder / "standard input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield str(path)


class _Total:
    """Sums over a text, taken while its batches are read."""

    def __init__(self) -> None:
        self.nll = self.nll_of_oov = 0.0
        self.oov = 0

    def of(self, batches: Batches) -> Batches:
        """Yield the batches unchanged and add them up."""
        from hstree.errors import InputError

        try:
            for nll, oov in batches:
                self.nll += float(nll.sum())
                self.nll_of_oov += float(nll[oov].sum())
                self.oov += int(oov.sum())
                yield nll, oov
        except OSError as error:  # which must not pass for an error of writing the lines
            raise InputError(f"cannot read the text: {error.strerror or error}") from error

    def as_dict(self, text: Corpus) -> dict[str, Any]:
        """Return the sums and the perplexities as JSON values."""
        from hstree.data.text_score import TextScore

        score = TextScore(self.nll, len(text), self.nll_of_oov, self.oov)
        return {
            "log_prob": -score.nll,
            "log_prob_of_oov": -score.nll_of_oov,
            "base": "e",
            "perplexity": score.perplexity,
            "perplexity_without_oov": score.perplexity_without_oov,
            "lines": text.n_lines,
            "tokens": score.tokens,
            "oov": score.oov,
            "vocabulary": {"size": len(text.vocabulary), "sha256": text.vocabulary.sha256},
            "corpus": dict(text.source),
        }


def _word_lines(text: Corpus, batches: Batches) -> Iterator[str]:
    """Yield the lines of --per-word."""
    done = 0
    for nll, oov in batches:
        words = text.words(slice(done, done + len(nll)))
        done += len(nll)
        for word, cost, unknown in zip(words, nll.tolist(), oov.tolist(), strict=True):
            yield f"{word}\t{-cost:.6f}{_OOV if unknown else ''}\n"


def _text_lines(text: Corpus, batches: Batches) -> Iterator[str]:
    """Yield a line for each line of a text."""
    from hstree.data.text_score import by_line

    start = text.line_start
    line = 0
    for nll, oov in by_line(batches, start):
        words = text.words(slice(start[line], start[line + len(nll)]))
        offsets = start[line : line + len(nll) + 1] - start[line]
        for a, b, cost, unknown in zip(offsets, offsets[1:], nll, oov, strict=False):
            yield f"{-cost:.6f}\t{b - a}\t{unknown}\t{' '.join(words[a : b - 1])}\n"
        line += len(nll)


def _summary(results: dict[str, Any]) -> Facts:
    from hstree._text import plural

    tokens, oov, words = results["tokens"], results["oov"], results["vocabulary"]
    return [
        ("of each", results["predicts"]),
        ("log-probability", f"{figure(results['log_prob'])} in all, natural logarithms"),
        ("perplexity", f"{figure(results['perplexity'])} with OOV"),
        ("", f"{figure(results['perplexity_without_oov'])} without"),
        (
            "tokens",
            f"{count(tokens)} in {plural(results['lines'], 'line')}, one <eos> per line included",
        ),
        ("OOV", f"{count(oov)} ({percent(oov, tokens)}), scored as <unk>"),
        ("vocabulary", vocabulary_line(words["size"], words["sha256"])),
    ]
