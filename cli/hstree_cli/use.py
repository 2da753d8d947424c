"""Commands that use a trained model, or several: predict, sample and score."""

import sys
from collections.abc import Iterator
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
    from hstree._typing import Bool, Float64
    from hstree.data.corpus import Corpus
    from hstree.data.text_score import TextScore

#: Words that are printed at once.
LINES = 10_000


def predict(
    model: opt.ModelFolder,
    context: Annotated[str, argument(metavar='"TEXT"', help="The words before.")],
    k: Annotated[int, option("-k", "Number of words.", "K", min=1)] = 10,
    also: opt.With = None,
    json: opt.JsonFile = None,
) -> None:
    """Print the most probable next words, with their probabilities.

    The search is exact with every tree and every other output layer. TEXT begins a
    line; only its last words count if it is long. Type words as they are in the
    corpus: in lower case if it is. With a cbow or skipgram model the answers are
    words that occur near those of TEXT.
    """
    from hstree._compiled import numpy_alone
    from hstree._files import write_json
    from hstree_cli.inputs import load_models, warn_of_unknown, words_of

    check_outputs(Output("--json", json), reads=[model, *(also or ())])
    # Compiling would take longer than to search once
    with showing_progress(), numpy_alone():
        loaded, words = load_models(model, also), words_of(context)
        unknown = warn_of_unknown(words, loaded.vocabulary)
        (predicted,) = loaded.predict([words], k)
    answers = [{"word": word, "probability": probability} for word, probability in predicted]
    answer = {"context": words, "unknown": unknown, "words": answers}
    title = "next word" if loaded.is_language_model else "word"
    lines = [(shortened(word), f"{probability:.6f}") for word, probability in predicted]
    before = Text(" ".join(map(shortened, words)) or "(no word)", style="bold")
    with written((json, lambda path: write_json(path, {"k": k, "predictions": [answer]}))):
        say(Group(before, table((title, "probability"), lines, (title,))))


def sample(
    model: opt.ModelFolder,
    words: Annotated[int, option("--words", "Words to draw.", "N", min=0, max=10**7)] = 50,
    seed: opt.Seed = 0,
    context: Annotated[str, option("--context", "Words to continue; not printed.", "TEXT")] = "",
    also: opt.With = None,
) -> None:
    """Draw words from a model, each given the words before it, and print the text.

    A drawn <eos> ends its line. Without --context the text begins a new line.
    Control characters in words are printed escaped.
    """
    from hstree.data.vocabulary import EOS
    from hstree.errors import OptionError
    from hstree_cli.inputs import load_models, warn_of_unknown, words_of

    with showing_progress():
        loaded: Any = load_models(model, also)
        if not loaded.is_language_model:
            raise OptionError(
                f"{model} is a model {loaded.name}, which cannot write text; give a language model"
            )
        before = words_of(context)
        warn_of_unknown(before, loaded.vocabulary)
        drawn = loaded.sample(words, before, random_state=seed)
    lines: list[list[str]] = [[]]
    for word in drawn:
        if word == EOS:
            lines.append([])
        else:
            lines[-1].append(word)
    typer.echo(printable("\n".join(map(" ".join, lines)), keep="\n"), nl=bool(lines[-1]))


def score(
    model: opt.ModelFolder,
    file: Annotated[
        str, argument(metavar="FILE", help=f"The text: {opt.CORPUS_KINDS}; - for stdin.")
    ],
    also: opt.With = None,
    per_word: Annotated[bool, option("--per-word", "Score words instead of lines.")] = False,
    output: Annotated[Path | None, option("--output -o", "Write lines to it.", "OUT")] = None,
    json: opt.JsonFile = None,
    as_text: opt.AsText = False,
) -> None:
    """Print the natural log-probability of each line of a text, and a summary.

    Lines are log-prob<TAB>words<TAB>OOV<TAB>text, the <eos> at the line's end
    counted; with --per-word they are word<TAB>log-prob, and <TAB>OOV if the word is
    not in the vocabulary and scored as <unk>. Contexts run over line ends.
    Logarithms are natural: divide by 2.302585 for base 10, as in ARPA tools.
    Control characters in words are printed escaped, but not in a file named by -o.
    """
    import numpy as np

    from hstree._compiled import if_it_pays
    from hstree._files import replacing, write_json
    from hstree.data.splits import read_before
    from hstree.data.text_score import TextScore
    from hstree.errors import explained
    from hstree_cli.inputs import load_models, read_as

    reads = [file, model, *(also or ())]
    check_outputs(Output("-o", output), Output("--json", json), reads=reads)
    with showing_progress():
        loaded = load_models(model, also)
        text = read_as(loaded.spec.labels, file, text=as_text)
        # lines that the model was trained on, or its tree built from
        for one in getattr(loaded, "models", [loaded]):
            reader = "layer" if one.spec.tree is None else "tree"
            made_from = {reader: one.spec.made_from}
            if seen := read_before(text, training=one.texts) or read_before(text, **made_from):
                warn(seen)
                break
        with explained(f"read {text.name}"), if_it_pays(len(text)):
            nll, oov = map(np.concatenate, zip(*loaded.scored(text), strict=True))
        results = {"predicts": loaded.predicts, **_totals(text, TextScore.of(nll, oov))}
        lines = (_word_lines if per_word else _text_lines)(text, nll, oov)

        def write_lines(path: Path) -> None:
            with replacing(path) as file:
                file.writelines(line.encode() for line in lines)

        with written(
            (output, write_lines),
            (json, lambda path: write_json(path, results)),
        ):
            if output is None:
                sys.stdout.writelines(printable(line, keep="\t\n") for line in lines)
            say(_summary(results))


def _totals(text: "Corpus", score: "TextScore") -> dict[str, Any]:
    """Return the score of a text, and what it is of, as JSON values."""
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


def _word_lines(text: "Corpus", nll: "Float64", oov: "Bool") -> Iterator[str]:
    """Yield the lines of --per-word."""
    for start in range(0, len(text), LINES):
        part = slice(start, start + LINES)
        words = text.words(part)
        for word, cost, unknown in zip(words, nll[part].tolist(), oov[part].tolist(), strict=True):
            yield f"{word}\t{-cost:.6f}\tOOV\n" if unknown else f"{word}\t{-cost:.6f}\n"


def _text_lines(text: "Corpus", nll: "Float64", oov: "Bool") -> Iterator[str]:
    """Yield a line for each line of a text, which has its <eos> at least."""
    import numpy as np

    starts = text.line_start
    # (L,) log-probability and OOV tokens of each line
    costs, unknown = (np.add.reduceat(sums, starts[:-1]) for sums in (nll, oov.astype(np.int64)))
    for (a, b), cost, n in zip(pairwise(starts.tolist()), costs, unknown, strict=True):
        yield f"{-cost:.6f}\t{b - a}\t{n}\t{' '.join(text.words(slice(a, b - 1)))}\n"


def _summary(results: dict[str, Any]) -> str:
    from hstree._text import figure, plural

    tokens, oov, words = results["tokens"], results["oov"], results["vocabulary"]
    lines = plural(results["lines"], "line")
    return facts(
        [
            ("of each", results["predicts"]),
            ("log-probability", f"{figure(results['log_prob'])} in all, natural logarithms"),
            ("perplexity", f"{figure(results['perplexity'])} with OOV"),
            ("", f"{figure(results['perplexity_without_oov'])} without"),
            ("tokens", f"{tokens:,} in {lines}, one <eos> per line included"),
            ("OOV", f"{oov:,} ({oov / tokens:.2%}), scored as <unk>"),
            ("vocabulary", f"{words['size']:,} words, sha256 {words['sha256'][:16]}"),
        ]
    )
