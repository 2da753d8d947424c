"""`hstree score`: how probable a model finds a text, line by line or word by word."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.examples import examples
from hstree_cli.options import CORPUS_KINDS, JsonFile, ModelFolder, Quiet

if TYPE_CHECKING:
    from hstree._typing import Bool, Float64
    from hstree.data.corpus import Corpus

    Splits = Iterable[tuple[Float64, Bool]]

#: Ends the line of a word that is out of the vocabulary.
_OOV = "\tOOV"


@examples("hstree score model other.txt", "hstree score model other.txt --per-word -o words.tsv")
def score(
    model: ModelFolder,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help=f"{CORPUS_KINDS}; - is standard input.", show_default=False
        ),
    ],
    per_word: Annotated[
        bool, typer.Option("--per-word", help="A line for each word, not for each line.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="Write the lines here.", readable=False),
    ] = None,
    json: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Print the natural log-probability of each line of a text, and a summary.

    Lines are log-prob<TAB>words<TAB>OOV<TAB>text, the <eos> at the line's end
    counted; with --per-word they are word<TAB>log-prob, and <TAB>OOV where the
    word is not in the vocabulary and scored as <unk>. A context reaches over line
    ends. Logarithms are natural: divide by 2.302585 for base 10, as in ARPA tools.
    Control characters in words are printed escaped; a file named by -o has them as
    they are.
    """
    from hstree._files import write_json
    from hstree.experiments.evaluation import read_by_model
    from hstree.models.base import load
    from hstree.models.files import FILES
    from hstree.training.scoring import in_text_order
    from hstree_cli.console import facts, say
    from hstree_cli.messages import warn
    from hstree_cli.outputs import check_file, written
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import Reader

    read = [file, *(model / name for name in FILES)]
    if output is not None:
        check_file(output, "-o", apart_from=read)
    if json is not None:
        check_file(json, "--json", apart_from=[*read, output])
    # On a terminal the lines themselves show how far it is.
    shown = output is None and sys.stdout.isatty()
    with showing_progress(quiet or shown), _named(file) as source:
        loaded = load(model)
        text = Reader(loaded.tree, lower=False, vocabulary=None).text(source)
        if (seen := read_by_model(loaded, text)) is not None:
            warn(seen)
        total = _Total()
        parts = total.counting(in_text_order(loaded.model, loaded.layer, loaded.windows(text)))
        lines = _words(text, parts) if per_word else _lines(text, parts)
        failure = _write_lines(lines, output)
        if failure is not None and json is None:
            raise failure
        for _ in lines:  # after a failure: the sums are taken while the lines go by
            pass
        figures = {"predicts": loaded.predicts, **total.as_dict(text)}
    with written((json, lambda path: write_json(path, figures))):
        if failure is not None:
            raise failure
        say(facts(_summary(figures)))


def _write_lines(lines: Iterator[str], output: Path | None) -> Exception | None:
    """Write lines to a file or to standard output; return what prevented it."""
    from hstree._files import replacing
    from hstree.errors import FileFormatError
    from hstree_cli.messages import printable

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
    """Give standard input a name while it is read; it is read more than once."""
    if source != "-":
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="hstree-") as folder:
        path = Path(folder) / "standard input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield str(path)


class _Total:
    """The sums over a text, taken while its parts go by."""

    def __init__(self) -> None:
        self.nll = self.nll_of_oov = 0.0
        self.oov = 0

    def counting(self, parts: Splits) -> Splits:
        """Yield parts as they are."""
        for nll, oov in parts:
            self.nll += float(nll.sum())
            self.nll_of_oov += float(nll[oov].sum())
            self.oov += int(oov.sum())
            yield nll, oov

    def as_dict(self, text: Corpus) -> dict[str, Any]:
        """Return the figures as JSON values."""
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


def _words(text: Corpus, parts: Splits) -> Iterator[str]:
    """Yield the lines of --per-word."""
    done = 0
    for nll, oov in parts:
        words = text.words(slice(done, done + len(nll)))
        done += len(nll)
        for word, cost, unknown in zip(words, nll.tolist(), oov.tolist(), strict=True):
            yield f"{word}\t{-cost:.6f}{_OOV if unknown else ''}\n"


def _lines(text: Corpus, parts: Splits) -> Iterator[str]:
    from hstree.data.text_score import by_line

    start = text.line_start
    line = 0
    for nll, oov in by_line(parts, start):
        words = text.words(slice(start[line], start[line + len(nll)]))
        of_line = start[line : line + len(nll) + 1] - start[line]
        for a, b, cost, unknown in zip(of_line, of_line[1:], nll, oov, strict=False):
            yield f"{-cost:.6f}\t{b - a}\t{unknown}\t{' '.join(words[a : b - 1])}\n"
        line += len(nll)


def _summary(figures: dict[str, Any]) -> list[tuple[str, str]]:
    from hstree_cli.console import count, figure, share

    tokens, oov = figures["tokens"], figures["oov"]
    words = figures["vocabulary"]
    return [
        ("of each", figures["predicts"]),
        ("log-probability", f"{figure(figures['log_prob'])} in all, natural logarithms"),
        ("perplexity", f"{figure(figures['perplexity'])} with OOV"),
        ("", f"{figure(figures['perplexity_without_oov'])} without"),
        ("tokens", f"{count(tokens)} in {count(figures['lines'])} lines, an <eos> each included"),
        ("OOV", f"{count(oov)} ({share(oov, tokens)}), scored as <unk>"),
        ("vocabulary", f"{count(words['size'])} words, sha256 {words['sha256'][:16]}"),
    ]
