"""Commands that build trees: methods, vocab, build, check, stats, show and convert."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import Output, check_outputs, written
from hstree_cli.tables import corpus_facts, facts, input_facts, origin
from hstree_cli.terminal import BAD_INPUT, complain, say, showing_progress, warn

if TYPE_CHECKING:
    from hstree.builders import Builder
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.data.vocabulary import Vocabulary

INPUT_HELP = (
    "Corpus, words with counts (.tsv, .csv), or vectors (.npy, .vec, .bin, GloVe .txt), depending "
    "on the method."
)
TREE_HELP = "Output file (.json, .json.gz or .npz)."
METHOD_HELP = 'Method with its options, such as "gmm epsilon=0.4"; `hstree methods` lists all.'


# Builders, layers and models


def _all_names() -> list[str]:
    return list(dict.fromkeys([*opt.candidate_names(), *opt.model_names()]))


def methods(
    names: Annotated[
        list[str] | None,
        argument(
            metavar="NAME", help="Names to describe with all options.", autocompletion=_all_names
        ),
    ] = None,
) -> None:
    """List all builders, layers and models, or describe some of them with their options.

    A candidate is a builder, a builder with a layer ("gmm + ngrams"), an output layer, or
    an n-gram model. Options follow as key=value.
    """
    from hstree.builders.registry import BUILDERS
    from hstree.experiments.candidate import SETS
    from hstree.layers import LAYERS
    from hstree.models import MODELS

    registries: dict[str, Any] = {
        "Builders of trees": BUILDERS,
        "Output layers": LAYERS,
        "Models (--model)": MODELS,
    }
    for name in names or ():
        say(_describe(name, registries))
    if names:
        return
    for title, registry in registries.items():
        say(f"\n{title}")
        records = registry.all()
        lines = [(f"  {name}", record.summary) for name, record in records.items()]
        for name in registry.native:
            # A name without a record: its package is not installed
            if name not in records:
                remedy = f"Needs another package; `hstree methods {name}` names it."
                lines.append((f"  {name}", remedy))
        say(facts(lines))
    say("\nN-gram models")
    say(facts([("  kn2 to kn7", "Kneser-Ney models of order 2 to 7, which can be compared.")]))
    say("\nSets of candidates")
    say(facts([(f"  {name}", summary) for name, summary in SETS.items()]))
    # Plugins that cannot be used
    for registry in registries.values():
        for reason in registry.broken().values():
            warn(reason)


def _describe(name: str, registries: dict[str, Any]) -> RenderableType:
    """Return the description of everything that has this name."""
    from hstree._options import suggestion
    from hstree.errors import OptionError
    from hstree.experiments.candidate import SETS, Candidate, candidates_in_set
    from hstree.models import config_of

    # A set, an n-gram model, or all records of the name: a builder and a layer may share it
    if name in SETS:
        candidates = candidates_in_set(name, config_of({}))
        lines = [(2, SETS[name]), *((4, str(candidate)) for candidate in candidates)]
        return _entry(name, "Set of candidates", lines)
    if re.fullmatch(r"kn\d+", name):
        return _entry(name, "N-gram model", [(2, Candidate.parse(name).summary)])
    entries = [
        _record_entry(title, registry.get(name))
        for title, registry in registries.items()
        if name in registry
    ]
    if not entries:
        hint = suggestion(name, _all_names())
        raise OptionError(f"there is no {name!r}; {hint}`hstree methods` lists all names")
    return Group(*entries)


def _record_entry(title: str, record: Any) -> RenderableType:
    """Return the summary, the source and the options of a builder, a layer or a model."""
    from hstree.data.vocabulary import Vocabulary
    from hstree.tree import Tree

    # A builder describes its input, a layer has the type of its input, a model has neither
    layer_inputs: dict[Any, str] = {Tree: "a tree", Vocabulary: "the words of a corpus"}
    input_text = getattr(record, "takes_text", layer_inputs.get(getattr(record, "takes", ""), ""))
    provider = "" if record.package == "hstree" else f", from {record.package}"
    lines = [(2, record.summary)]
    if input_text:
        lines.append((2, f"Input: {input_text}."))
    if getattr(record, "references", ""):
        lines.append((2, f"Source: {record.references}"))
    for parameter in record.options:
        typed = f"{parameter.name}={parameter.spelled(parameter.default)}"
        lines += [(4, f"{typed}  ({parameter.expected})"), (8, parameter.help)]
    return _entry(record.name, f"{title}{provider}", lines)


def _entry(name: str, kind: str, lines: list[tuple[int, str]]) -> RenderableType:
    """Return a heading, and lines with their indents."""
    heading = Text.assemble((name, "bold"), f"  {kind}")
    return Group(heading, *(Padding(Text(text), (0, 0, 0, left)) for left, text in lines), "")


# Building


@opt.spread_options
def vocab(
    corpus: opt.CorpusName,
    output: Annotated[Path, option("--output -o", "Output file.", "FILE")] = Path("vocab.tsv"),
    *,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    force: opt.Force = False,
    reading: opt.CorpusOptions,
) -> None:
    """Count the words in a corpus and write a file of word<TAB>count lines.

    The first line of the file records the lines that were counted, so that later commands
    can warn of test lines among them.
    """
    from hstree.data.corpus import Corpus

    check_outputs(Output("-o", output), reads=[corpus], force=force)
    with showing_progress(jobs=jobs, scheduler=scheduler):
        text: Corpus = _read_words(partial(Corpus.read, corpus), reading)
        text.counted_vocabulary().save(output)
    say(facts([*corpus_facts(text), ("written", str(output))]))


def _read_words(
    read: Callable[..., Any], options: opt.CorpusOptions, words: "Vocabulary | None" = None
) -> Any:
    """Read an input with these options; read only the training split of a corpus if selected.

    The vocabulary of a corpus is `words`, or the words that the options select.
    """
    from hstree.data.corpus import Corpus

    selection: dict[str, Any] = {"min_count": options.min_count, "max_size": options.max_size}
    selection["unk"] = words is not None or not options.no_unk
    first = dict(selection)
    if options.train_split_only and words is None:
        # The words are selected from the training split alone, after all words are read.
        first["min_count"] = 1
    data = read(vocabulary=words, lower=options.lower, text=options.text, **first)
    if options.train_split_only and isinstance(data, Corpus):
        data = data.splits()[0]
        chosen = data.select_vocabulary(**selection) if words is None else words
        data = data.with_vocabulary(chosen)
    return data


@opt.spread_options
def build(
    input: Annotated[str, argument(metavar="INPUT", help=INPUT_HELP)],
    *,
    method: Annotated[
        str, option("--method -m", METHOD_HELP, "METHOD", autocompletion=opt.builder_names)
    ],
    output: Annotated[Path, option("--output -o", TREE_HELP, "FILE")] = Path("tree.json"),
    seed: opt.Seed = 0,
    labels: Annotated[
        Path | None, option("--labels", "Labels of the rows of a .npy file, one per line.", "FILE")
    ] = None,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    force: opt.Force = False,
    reading: opt.CorpusOptions,
    vocabulary: opt.VocabularyFile = None,
) -> None:
    """Build a tree from a corpus, word counts or word vectors.

    `hstree methods gmm` shows the options of the method gmm. If INPUT contains vectors,
    --vocabulary selects the words of the tree. Words without a vector are placed in a
    separate Huffman tree under the same root.
    """
    import hstree
    from hstree.data.corpus import Corpus
    from hstree.tree.files import ENDINGS
    from hstree_cli.inputs import read_vocabulary

    builder, options = read_method(method, seed)
    # Input files, which the output must not replace
    files = [
        value
        for value in options.values()
        if isinstance(value, Path) or str(value).endswith(ENDINGS)
    ]
    reads = [input, vocabulary, labels, *files]
    check_outputs(Output("-o", output, ENDINGS), reads=reads, force=force)
    with showing_progress(jobs=jobs, scheduler=scheduler):
        words = None
        if vocabulary is not None:
            words = read_vocabulary(
                vocabulary,
                min_count=reading.min_count,
                max_size=reading.max_size,
                no_unk=reading.no_unk,
            )
        data = _open_input(input, builder, words, labels, reading)
        tree = hstree.build(builder.name, data, vocabulary=words, **options)
        tree.save(output)
    rows = [*tree.stats().facts(), *input_facts(tree)]
    if isinstance(data, Corpus):
        rows.append(("text", origin(data)))
    if getattr(data, "named_by_index", False):
        rows.append(("rows", "named by index; --labels FILE or a .labels.tsv file supplies names"))
    say(facts([*rows, ("written", str(output))]))


def _open_input(
    input: str,
    builder: "Builder",
    words: "Vocabulary | None",
    labels: Path | None,
    options: opt.CorpusOptions,
) -> "Corpus | Vocabulary | WordVectors":
    """Open the input of a builder; refuse options that do not apply to it."""
    from hstree.builders import open_input
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree_cli.inputs import refuse_options

    # Options that do not apply to the input are refused, not ignored
    read = partial(open_input, input, builder, labels=labels)
    data: Corpus | Vocabulary | WordVectors = _read_words(read, options, words)
    if not isinstance(data, WordVectors):
        refuse_options(f"only for vectors, and {input} contains none", labels=labels)
    if not isinstance(data, Corpus):
        refuse_options(f"only for a corpus, and {input} is not one", **vars(options))
    return data


def read_method(method: str, seed: int) -> "tuple[Builder, dict[str, Any]]":
    """Return the builder that ``--method`` names, and its options with the random seed."""
    from hstree.builders.registry import parse_method

    named, options = parse_method(method)
    # --seed is the default of an option random_state
    if any(option.name == "random_state" for option in named.options):
        options.setdefault("random_state", seed)
    return named, options


# Looking at trees


def check(tree: opt.TreeFile) -> None:
    """Check a tree file and print each rule of the format that it breaks."""
    from hstree.errors import TreeError
    from hstree.tree import Tree
    from hstree.tree.files import read_content

    with showing_progress():
        content = read_content(tree)
        # `Tree` reports only the first broken rule
        try:
            Tree(**vars(content))
        except TreeError as error:
            for rule, where in content.broken_rules().items():
                complain(f"{tree}: {rule}: {where}")
            raise typer.Exit(BAD_INPUT) from error
    say(f"{tree}: follows all rules of the format")


def stats(tree: opt.TreeFile, json: opt.JsonFile = None) -> None:
    """Print the size, code lengths and cost of a tree."""
    from hstree._files import write_json
    from hstree.tree import load

    check_outputs(Output("--json", json), reads=[tree])
    with showing_progress():
        loaded = load(tree)
        statistics = loaded.stats()
    with written((json, lambda path: write_json(path, {"tree": statistics.as_dict()}))):
        say(facts([*statistics.facts(), *input_facts(loaded)]))


def show(
    tree: opt.TreeFile,
    word: Annotated[str | None, option("--word", "Show the codes of this word.", "W")] = None,
    depth: Annotated[
        int | None,
        option("--depth", "Maximum number of levels (default: 3; 40 with --word).", "D", min=1),
    ] = None,
) -> None:
    """Draw the top levels of a tree, or the codes of a word.

    Each branch is shown with its fraction of the training counts, its number of leaves and
    its most frequent words.
    """
    from hstree.tree import load
    from hstree.tree.branches import Branches
    from hstree_cli.tree_drawing import draw_codes, draw_top

    with showing_progress():
        opened = load(tree)
        branches = Branches(opened)
        if word is None:
            views = [draw_top(branches, depth or 3)]
        else:
            views = list(draw_codes(opened, branches, word, depth or 40))
    for view in views:
        say(view)


def convert(
    source: Annotated[Path, argument(metavar="IN", help="Input file, in any format.")],
    target: Annotated[Path, argument(metavar="OUT", help="Output file.")],
    from_: Annotated[
        str | None, option("--from", "Format of IN (default: from its extension).", "NAME")
    ] = None,
    to: Annotated[
        str | None, option("--to", "Format of OUT (default: from its extension).", "NAME")
    ] = None,
    labels: Annotated[
        Path | None,
        option("--labels", "Labels of a linkage or napkinXC tree, one per line.", "FILE"),
    ] = None,
    force: opt.Force = False,
) -> None:
    """Convert a tree from one format to another.

    Formats and their extensions: tree (.json, .json.gz, .npz), dot (.dot, .gv),
    graphml (.graphml), newick (.nwk, .newick), brown (.paths), napkinxc
    (.napkinxc), linkage (.npy), taxonomy (.csv, .tsv: columns parent and child,
    or one column per level). dot can only be written; taxonomy can only be read. The
    command fails if the format of OUT cannot represent the tree; it lists information that
    is lost otherwise.
    """
    from hstree import formats

    # A format may use more than one file, such as a tree and its labels
    source_format = formats.find_format(source, from_)
    target_format = formats.find_format(target, to)
    files = target_format.files(target)
    reads = [*source_format.files(source), labels]
    for path in files:
        check_outputs(Output("OUT", path), reads=reads, force=force)
    with showing_progress():
        tree = formats.read(source, source_format.name, labels=labels)
        formats.write(tree, target, target_format.name)
    rows = [("read", f"{source} ({source_format.name})")]
    if source_format.name == "taxonomy":
        rows.append(("as", tree.meta["input"]["read_as"]))
    rows += [
        ("written", f"{', '.join(map(str, files))} ({target_format.name})"),
        ("labels", f"{tree.n_labels:,}"),
        ("nodes", f"{tree.n_nodes:,}"),
        ("sha256", tree.sha256),
    ]
    if losses := target_format.losses(tree):
        rows.append(("not kept", ", ".join(losses)))
    say(facts(rows))
