"""Commands that build trees: methods, vocab, build, check, stats, show and convert."""

import re
import shlex
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


INPUT_HELP = (
    "A corpus, words with counts (.tsv) or vectors (.npy, .vec, .bin, GloVe .txt), as the method "
    "needs."
)
TREE_HELP = "The tree: .json, .json.gz or .npz."
METHOD_HELP = 'Method with its options, as in "gmm epsilon=0.4"; `hstree methods` lists them.'


# What there is


def _all_names() -> list[str]:
    return list(dict.fromkeys([*opt.candidate_names(), *opt.model_names()]))


def methods(
    names: Annotated[
        list[str] | None,
        argument(metavar="NAME", help="What to describe in full.", autocompletion=_all_names),
    ] = None,
) -> None:
    """List all builders, layers and models; describe some with all options.

    A candidate is a builder, a builder with a layer over its tree ("gmm + ngrams"), an
    output layer over words, or an n-gram model. Options follow as key=value.
    """
    from hstree._options import suggestion
    from hstree.builders.registry import BUILDERS
    from hstree.errors import OptionError
    from hstree.experiments.candidate import SETS, Candidate, candidates_in_set
    from hstree.layers import LAYERS
    from hstree.models import MODELS, config_of

    kinds: dict[str, Any] = {
        "Builders of trees": BUILDERS,
        "Output layers": LAYERS,
        "Models (--model)": MODELS,
    }
    for name in names or ():
        described = [
            _description(title, kind.get(name)) for title, kind in kinds.items() if name in kind
        ]
        if name in SETS:
            candidates = [
                (4, str(candidate)) for candidate in candidates_in_set(name, config_of({}))
            ]
            described = [_entry(name, "Set of candidates", [(2, SETS[name]), *candidates])]
        elif re.fullmatch(r"kn\d+", name):
            described = [_entry(name, "N-gram model", [(2, Candidate.parse(name).summary)])]
        elif not described:
            hint = suggestion(name, _all_names())
            raise OptionError(f"there is no {name!r}; {hint}`hstree methods` lists all")
        say(Group(*described))
    if names:
        return
    for title, kind in kinds.items():
        say(f"\n{title}")
        say(facts([(f"  {name}", one.summary) for name, one in kind.all().items()]))
    say("\nN-gram models")
    say(facts([("  kn2 to kn7", "Kneser-Ney models of the last words, which are candidates.")]))
    say("\nSets of candidates")
    say(facts([(f"  {name}", sentence) for name, sentence in SETS.items()]))
    for kind in kinds.values():
        for reason in kind.broken().values():
            warn(reason)


def _description(title: str, record: Any) -> RenderableType:
    """Return the summary, the source and the options of a builder, a layer or a model."""
    from hstree.data.vocabulary import Vocabulary
    from hstree.tree import Tree

    of_layers: dict[Any, str] = {Tree: "a tree", Vocabulary: "the words of a corpus"}
    takes = getattr(record, "takes_text", of_layers.get(getattr(record, "takes", ""), ""))
    provider = "" if record.package == "hstree" else f", from {record.package}"
    lines = [(2, record.summary)]
    lines += [(2, f"Takes {takes}.")] if takes else []
    lines += [(2, f"Source: {record.references}")] if getattr(record, "references", "") else []
    for one in record.options:
        typed = f"{one.name}={one.spelled(one.default)}"
        lines += [(4, f"{typed}  ({one.expected})"), (8, one.help)]
    return _entry(record.name, f"{title}{provider}", lines)


def _entry(name: str, kind: str, lines: list[tuple[int, str]]) -> RenderableType:
    """Return a heading and indented lines."""
    heading = Text.assemble((name, "bold"), f"  {kind}")
    return Group(heading, *(Padding(Text(text), (0, 0, 0, left)) for left, text in lines), "")


# Building


def vocab(
    corpus: opt.CorpusName,
    output: Annotated[Path, option("--output -o", "Vocabulary.", "FILE")] = Path("vocab.tsv"),
    *,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    force: opt.Force = False,
    train_split_only: opt.TrainSplitOnly = False,
    min_count: opt.MinCount = None,
    max_size: opt.MaxSize = None,
    no_unk: opt.NoUnk = False,
    lower: opt.Lower = False,
    text: opt.AsText = False,
) -> None:
    """Count the words of a corpus into a file of word<TAB>count lines.

    The first line records the text and its lines, so that later commands notice test
    lines among them.
    """
    from hstree.data.corpus import Corpus
    from hstree_cli.inputs import training_split

    check_outputs(Output("-o", output), reads=[corpus], force=force)
    choice: dict[str, Any] = {"min_count": min_count, "max_size": max_size, "unk": not no_unk}
    with showing_progress(jobs=jobs, scheduler=scheduler):
        # Words of the training split alone are chosen behind the split.
        first = {**choice, "min_count": 1} if train_split_only else choice
        read = Corpus.read(corpus, lower=lower, text=text, **first)
        if train_split_only:
            read = training_split(read, None, **choice)
        read.counted_vocabulary().save(output)
    say(facts([*corpus_facts(read), ("written", str(output))]))


def build(
    input: Annotated[str, argument(metavar="INPUT", help=INPUT_HELP)],
    *,
    method: Annotated[
        str, option("--method -m", METHOD_HELP, "METHOD", autocompletion=opt.builder_names)
    ],
    output: Annotated[Path, option("--output -o", TREE_HELP, "FILE")] = Path("tree.json"),
    seed: opt.Seed = 0,
    labels: Annotated[Path | None, option("--labels", "Words of a .npy, by line.", "FILE")] = None,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    force: opt.Force = False,
    train_split_only: opt.TrainSplitOnly = False,
    min_count: opt.MinCount = None,
    max_size: opt.MaxSize = None,
    no_unk: opt.NoUnk = False,
    lower: opt.Lower = False,
    text: opt.AsText = False,
    vocabulary: opt.VocabularyFile = None,
) -> None:
    """Build a tree.

    `hstree methods gmm` shows the options of a method. With vectors, --vocabulary
    gives the words of the tree; those that have no vector go into a separate Huffman
    tree beside the rest.
    """
    import hstree
    from hstree.builders import open_input
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.tree.files import ENDINGS
    from hstree_cli.inputs import read_vocabulary, refuse_options, training_split

    chosen, options = builder_of(method, seed)
    values = options.values()
    named = [v for v in values if isinstance(v, Path) or str(v).endswith(ENDINGS)]
    reads = [input, vocabulary, labels, *named]
    check_outputs(Output("-o", output, ENDINGS), reads=reads, force=force)
    choice: dict[str, Any] = {"min_count": min_count, "max_size": max_size}
    how: dict[str, Any] = {**choice, "lower": lower, "text": text}
    only = {"train_split_only": train_split_only, "no_unk": no_unk}
    with showing_progress(jobs=jobs, scheduler=scheduler):
        words = None if vocabulary is None else read_vocabulary(vocabulary, **choice, no_unk=no_unk)
        unk = words is not None or not no_unk
        # Words of the training split alone are chosen behind the split.
        first = {**how, "min_count": 1} if train_split_only and words is None else how
        opened = open_input(input, chosen, vocabulary=words, labels=labels, unk=unk, **first)
        if not isinstance(opened, WordVectors):
            refuse_options(f"for vectors, and {input} holds none", labels=labels)
        if not isinstance(opened, Corpus):
            how["min_count"] = min_count
            refuse_options(f"for a corpus, and {input} is none", **how, **only)
        elif train_split_only:
            opened = training_split(opened, words, **choice, unk=unk)
        tree = hstree.build(chosen.name, opened, vocabulary=words, **options)
        tree.save(output)
    rows = [*tree.stats().facts(), *input_facts(tree)]
    if isinstance(opened, Corpus):
        rows.append(("text", origin(opened)))
    if getattr(opened, "named_by_index", False):
        rows.append(("rows", "named by index: give --labels FILE, or a .labels.tsv beside them"))
    say(facts([*rows, ("written", str(output))]))


def builder_of(method: str, seed: int) -> "tuple[Builder, dict[str, Any]]":
    """Return the builder and the values of its options that ``--method`` spells.

    Raises OptionError when there is none of the name, or an option cannot have its value.
    """
    from hstree._options import parse_options, typed_words
    from hstree.builders import builder
    from hstree.errors import OptionError

    name, *pairs = typed_words(method) or [""]
    if "+" in pairs:
        typed = shlex.join(["hstree", "compare", "CORPUS", method, "-o", "DIR"])
        raise OptionError(
            f"{method!r} names a layer, too, and a tree has none; `{typed}` trains with it"
        )
    chosen = builder(name)
    options = parse_options(name, chosen.options, pairs)
    if any(option.name == "random_state" for option in chosen.options):
        options.setdefault("random_state", seed)
    return chosen, options


# Looking at trees


def check(tree: opt.TreeFile) -> None:
    """Check a tree file; name every rule of the format that it breaks, one per line."""
    from hstree.errors import TreeError
    from hstree.tree import Tree
    from hstree.tree.files import read_content

    with showing_progress():
        content = read_content(tree)
        try:
            Tree(**vars(content))
        except TreeError as error:
            for rule, where in content.broken_rules().items():
                complain(f"{tree}: {rule}: {where}")
            raise typer.Exit(BAD_INPUT) from error
    say(f"{tree}: every rule kept")


def stats(tree: opt.TreeFile, json: opt.JsonFile = None) -> None:
    """Print a tree's size, code lengths and cost."""
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
        int | None, option("--depth", "Decisions from the root (3; with --word 40).", "D", min=1)
    ] = None,
) -> None:
    """Draw the top of a tree, or the codes of a word.

    Each branch has its share of the counts, its leaves and its most frequent words.
    """
    from hstree.tree import load
    from hstree.tree.branches import Branches
    from hstree_cli.tree_drawing import draw_codes, draw_top, label_id

    with showing_progress():
        opened = load(tree)
        branches = Branches(opened)
        if word is None:
            views = [draw_top(branches, depth or 3)]
        else:
            views = list(draw_codes(opened, branches, label_id(opened, word), depth or 40))
    for view in views:
        say(view)


def convert(
    source: Annotated[Path, argument(metavar="IN", help="A tree in any format.")],
    target: Annotated[Path, argument(metavar="OUT", help="The converted tree.")],
    from_: Annotated[
        str | None, option("--from", "Format of IN (default: by its ending).", "NAME")
    ] = None,
    to: Annotated[
        str | None, option("--to", "Format of OUT (default: by its ending).", "NAME")
    ] = None,
    labels: Annotated[
        Path | None, option("--labels", "Labels of a linkage or a napkinXC tree, by line.", "FILE")
    ] = None,
    force: opt.Force = False,
) -> None:
    """Convert a tree to another format, or to a tree file.

    Formats and their extensions: tree (.json, .json.gz, .npz), dot (.dot, .gv),
    graphml (.graphml), newick (.nwk, .newick), brown (.paths), napkinxc
    (.napkinxc), linkage (.npy), taxonomy (.csv, .tsv: columns parent and child,
    or one per level), darknet (.tree: lines of a name and its parent's line). dot is
    only written, taxonomy and darknet only read. What OUT cannot hold is refused, or
    named as not kept.
    """
    from hstree import formats

    read_as = formats.find_format(source, from_)
    written_as = formats.find_format(target, to)
    files, reads = written_as.files(target), [*read_as.files(source), labels]
    for path in files:
        check_outputs(Output("OUT", path), reads=reads, force=force)
    with showing_progress():
        tree = formats.read(source, read_as.name, labels=labels)
        formats.write(tree, target, written_as.name)
    rows = [("read", f"{source} ({read_as.name})")]
    if read_as.name == "taxonomy":
        rows.append(("as", tree.meta["input"]["read_as"]))
    rows += [
        ("written", f"{', '.join(map(str, files))} ({written_as.name})"),
        ("labels", f"{tree.n_labels:,}"),
        ("nodes", f"{tree.n_nodes:,}"),
        ("sha256", tree.sha256),
    ]
    if losses := written_as.losses(tree):
        rows.append(("not kept", ", ".join(losses)))
    say(facts(rows))
