"""`hstree recommend`: which output layer to train in the seconds that there are."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli.arguments import refuse_lists
from hstree_cli.completions import layers, methods
from hstree_cli.options import (
    CorpusName,
    HeldOut,
    JsonFile,
    Quiet,
    Reading,
    examples,
    option,
)
from hstree_cli.outputs import check_file, check_folder, written
from hstree_cli.registered_options import ModelOptions
from hstree_cli.tables import (
    bold_if,
    facts,
    figure,
    narrow,
    origin,
    short_figure,
    table,
)
from hstree_cli.terminal import say, showing_progress

if TYPE_CHECKING:
    from hstree.experiments.entries import Entry
    from hstree.experiments.recommendation import Recommendation


@examples(
    "hstree recommend corpus.txt --seconds 600 -o advice",
    "hstree recommend corpus.txt --scores 500 -o advice",
    "hstree recommend corpus.txt --seconds 600 -o advice --train",
)
def recommend(
    corpus: CorpusName,
    *,
    output: Annotated[
        Path, option("--output -o", "Folder for trials, trees and the recommendation.", "DIR")
    ],
    seconds: Annotated[
        float,
        option(
            "--seconds",
            "Budget from the text to the trained model: vectors, tree, training.",
            "S",
        ),
    ] = 600.0,
    scores: Annotated[
        float | None,
        option("--scores", "Recommend nothing that computes more scores a target.", "N"),
    ] = None,
    target_ppl: Annotated[
        float | None,
        option(
            "--target-ppl",
            "Recommend what reaches this validation perplexity first, if any does in time.",
            "P",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        option(
            "--method -m",
            'Candidate with its options, as in "gmm --epsilon 0.4" or "gmm + ngrams"; repeatable.',
            "METHOD",
            autocompletion=methods,
        ),
    ] = None,
    layer: Annotated[
        list[str] | None,
        option(
            "--layer",
            'Output layer as a candidate, as in "sampled --samples 500"; repeatable.',
            "LAYER",
            autocompletion=layers,
        ),
    ] = None,
    train: Annotated[
        bool,
        option("--train", "Train the recommended layer for the whole budget; say what came true."),
    ] = False,
    held_out: HeldOut,
    training: Annotated[
        dict[str, Any], ModelOptions(without=frozenset(["epochs", "seconds", "online"]))
    ],
    reading: Reading,
    json: JsonFile = None,
    force: Annotated[bool, option("--force", "Replace an existing file of --json.")] = False,
    quiet: Quiet = False,
) -> None:
    """Recommend a tree, or none, for a budget of seconds, of scores, or a wanted perplexity.

    Trees are built, and every candidate is trained for 1/64 and 1/32 of the
    seconds, the best three for 1/16, the best two for 1/8; then validation
    perplexities are extrapolated. With the eight candidates of the default that
    takes about 0.9 of the seconds, before and beside what --train takes: huffman,
    gmm, gmm --epsilon 0.4 --trees 4, flat, and classes, one tree and four, by
    themselves and with n-gram features.

    DIR gets recommendation.json and the trees. Finished trials are kept: the same
    command goes on where it stopped, other limits use the trials that there are,
    and --train trains what was recommended.
    """
    from hstree._files import write_json
    from hstree.experiments.recommendation import recommend as recommended
    from hstree_cli.inputs import read_splits, read_vocabulary, warn_of_seen_lines

    for typed, values in (("-m", method), ("--layer", layer)):
        refuse_lists(typed, values)
    sources = [corpus, held_out.valid, held_out.test, reading.vocabulary]
    check_folder(
        output,
        "-o",
        ("recommendation.json", "runs", "trained", "checkpoints"),
        reads=sources,
        beside=[json],
    )
    check_file(json, "--json", force=force, reads=sources)
    with showing_progress(quiet):
        splits = read_splits(corpus, held_out, reading, read_vocabulary(reading))
        warn_of_seen_lines(splits, {})
        found = recommended(
            splits,
            output,
            seconds=seconds,
            scores=scores,
            target_ppl=target_ppl,
            candidates=_candidates(method, layer, len(splits.train.vocabulary), training),
            train=train,
            **training,
        )
    with written((json, lambda path: write_json(path, found.as_dict()))):
        _print(found, output, origin(splits.train))


def _candidates(
    method: list[str] | None, layer: list[str] | None, n_words: int, training: dict[str, Any]
) -> list[Entry]:
    """Return the candidates, named as they are typed."""
    from hstree.experiments.recommendation import default_candidates
    from hstree.models import config_of, kind_of
    from hstree_cli.method_strings import as_typed, parse_entries

    if not method and not layer:
        model = kind_of(config_of(training)).model
        return as_typed(default_candidates(n_words, with_contexts=model.is_language_model))
    return [*chain(*parse_entries(method or (), layer or ()))]


def _print(found: Recommendation, folder: Path, text: str) -> None:
    """Print the candidates, the recommendation and what came true."""
    columns = ("scores\n/target", "s to\nbuild", "s\ntrained", "\nvalid", "\nexpected")
    filled = table("\ncandidate", *columns, text=("\ncandidate",))
    for candidate in found.candidates:
        last = candidate.trials[-1]
        filled.add_row(
            candidate.name,
            short_figure(candidate.scores),
            short_figure(candidate.before),
            short_figure(last.seconds) + ("*" if last.converged else ""),
            figure(last.valid, 1),
            figure(candidate.expected(found.seconds), 1),
            style=bold_if(candidate is found.best),
        )
    say(narrow(filled, *columns))
    stopped = (
        [("*", "training stopped by itself")]
        if any(candidate.has_converged for candidate in found.candidates)
        else []
    )
    left_out = [(f"left out: {name}", reason) for name, reason in found.left_out.items()]
    say(facts([("text", text), *stopped, *left_out, *_advice(found, folder)]))


def _advice(found: Recommendation, folder: Path) -> list[tuple[str, str]]:
    """Return what is recommended, how sure that is, and what came true."""
    best = found.best
    low, high = found.interval
    rows = [
        ("recommended", best.name),
        (
            "expected",
            f"validation perplexity {figure(found.expected, 1)}, likely {figure(low, 1)} to "
            f"{figure(high, 1)}, after {found.seconds:g} s; over the first {found.scored:,} tokens",
        ),
    ]
    if found.target_ppl is not None:
        rows.append(("target", _reached(found, found.target_ppl)))
    elif found.rival is not None:
        rival, chance = found.rival
        rows.append(
            (
                "how sure",
                f"better than {rival.name} ({figure(rival.expected(found.seconds), 1)}) with a "
                f"chance of {100 * chance:.0f}%, and than the others with a higher one",
            )
        )
    if best.tree is not None:
        rows.append(("tree", str(folder / best.tree)))
    if found.outcome is None:
        return [*rows, ("next", "the same command with --train trains it for the whole budget")]
    real = found.outcome
    verdict = "within" if low <= real.valid <= high else "outside of"
    model = shlex.quote(str(folder / real.model))
    return [
        *rows,
        (
            "came true",
            f"validation perplexity {figure(real.valid, 1)}, {verdict} these limits, test "
            f"{figure(real.test, 1)}, after {short_figure(real.seconds)} s",
        ),
        ("model", f"{model}; `hstree predict {model} WORDS` uses it"),
    ]


def _reached(found: Recommendation, target: float) -> str:
    """Return when a wanted perplexity is expected."""
    reached = found.best.seconds_to(target)
    if reached <= found.seconds:
        return f"{target:g} is expected after {short_figure(reached)} s"
    return (
        f"no candidate that was tried to the end is expected to reach {target:g} in "
        f"{found.seconds:g} s; this one comes nearest"
    )
