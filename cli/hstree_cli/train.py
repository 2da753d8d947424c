"""Commands that train: evaluate, bootstrap, embed and classify."""

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import PAGE, Output, check_outputs, written
from hstree_cli.tables import corpus_facts, facts, table
from hstree_cli.terminal import INTERRUPTED, say, showing_progress, warn

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.data.multilabel import MultilabelData
    from hstree.experiments.results import Comparison

ROUNDS_HELP = (
    "Candidates of the rounds after the first, built from vectors: gmm, "
    '"classes cluster_by=vectors" '
    "(default: gmm); the last is that of all later rounds."
)
VECTOR_ENDINGS = (".vec", ".txt", ".bin", ".npy")
SAMPLES = "label,label feature:value ... of each, perhaps after a line N D L."
METHOD_HELP = (
    'Method with its options, as in "kmeans arity=16"; "kmeans arity=10 max_leaves=100" by default.'
)
#: Why no option chooses words beside a tree.
OF_TREE = "the words are the tree's labels"
#: Numbers of first labels that are scored.
KS = (1, 3, 5)


def evaluate(
    candidate: Annotated[
        str,
        argument(
            metavar="CANDIDATE", help=f"{opt.CANDIDATE_HELP}.", autocompletion=opt.candidate_names
        ),
    ],
    corpus: opt.CorpusName,
    *,
    save: Annotated[Path | None, option("--save", "Save the trained model.", "MODEL_DIR")] = None,
    vectors_out: Annotated[
        Path | None, option("--vectors-out", "Write each word's mean predicted vector.", "FILE.npy")
    ] = None,
    json: opt.JsonFile = None,
    force: opt.Force = False,
    valid: opt.Valid = None,
    test: opt.Test = None,
    min_count: opt.MinCount = None,
    lower: opt.Lower = False,
    text: opt.AsText = False,
    vocabulary: opt.VocabularyFile = None,
    epochs: opt.Epochs = None,
    seconds: opt.Seconds = None,
    seed: opt.Seed = 0,
    model: opt.Model = "lbl",
    dim: opt.Dim = None,
    context: opt.Width = None,
    batch_size: opt.BatchSize = None,
    learning_rate: opt.Rate = None,
    dropout: opt.Dropout = None,
) -> None:
    """Train a model with one tree or output layer and print its perplexity.

    By default, the last 10% of CORPUS's lines are the test split and the 10% before
    them the validation split; with --valid or --test alone, the other is the last
    10%. A tree's labels are the vocabulary; other candidates are over the words of the
    training split. It trains for at most 20 epochs; Ctrl-C keeps the best weights so
    far, and the same command goes on (with --force where these are written).
    `hstree score` scores a saved model.
    """
    from hstree._files import cache_folder, json_hash, remove_unused
    from hstree.errors import HstreeError
    from hstree.experiments import results
    from hstree.experiments.candidate import Candidate, TreeCandidate
    from hstree.experiments.compare import evaluate as train
    from hstree.models.files import TREE_FILES
    from hstree_cli.inputs import read_splits, refuse_options
    from hstree_cli.results import print_evaluation

    of_step = {"batch_size": batch_size, "learning_rate": learning_rate, "dropout": dropout}
    options = opt.model_options(model, seed, dim=dim, context=context, **of_step)
    stop = opt.stopping_rule(epochs, seconds)
    unsaved = save

    def keep(trained: Any) -> None:
        """Save the model before it is scored; a failure is tried again, and named, at the end."""
        nonlocal unsaved
        if trained.history_.interrupted:
            again = " with --force" if save or json or vectors_out else ""
            warn(
                "interrupted: these figures are of the best weights so far, which takes a moment "
                f"(Ctrl-C again ends at once); the same command{again} goes on"
            )
        if save is not None:
            with suppress(HstreeError, OSError, MemoryError):
                trained.save(save)
                unsaved = None

    with showing_progress():
        one = Candidate.parse(candidate)
        if isinstance(one, TreeCandidate):
            refuse_options(OF_TREE, vocabulary=vocabulary, min_count=min_count)
        check_outputs(
            Output("--json", json),
            Output("--vectors-out", vectors_out, (".npy",)),
            Output("--save", save, contents=tuple(TREE_FILES)),
            reads=[corpus, valid, test, vocabulary, *one.files],
            force=force,
        )
        ways: dict[str, Any] = {"lower": lower, "text": text, "vocabulary": vocabulary}
        splits = read_splits(corpus, valid, test, **ways, candidates=[one], min_count=min_count)
        texts = [part.record for part in splits]
        key = json_hash({"candidate": one.name, "texts": texts, "stop": str(stop), **options})
        work = cache_folder() / "evaluations" / key[:16]
        evaluation = train(one, splits, stop=stop, folder=work, trained=keep, **options)
    saved = [save] if save is not None and unsaved is None else []
    head = {"format": results.FORMAT, "version": results.VERSION}
    with written(
        (unsaved, evaluation.model.save),
        (json, lambda path: results.write_struct(path, evaluation.comparison, **head)),
        (vectors_out, lambda path: _save_mean_vectors(evaluation.model, splits.train, path)),
    ) as files:
        print_evaluation(evaluation, [*saved, *files])
    if evaluation.interrupted:
        raise typer.Exit(INTERRUPTED)
    remove_unused(work)  # from which a stopped training would go on


def _save_mean_vectors(model: Any, train: "Corpus", path: Path) -> None:
    with showing_progress():
        model.mean_predicted_vectors(model.reencode(train)).save(path)


def bootstrap(
    corpus: opt.CorpusName,
    candidates: Annotated[
        list[str] | None,
        argument(metavar="CANDIDATE", help=ROUNDS_HELP, autocompletion=opt.builder_names),
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every round.", "DIR")],
    rounds: Annotated[
        int | None,
        option("--rounds", "Trees after the first (one for each CANDIDATE).", "N", min=1),
    ] = None,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    force: opt.Replace = False,
    valid: opt.Valid = None,
    test: opt.Test = None,
    min_count: opt.MinCount = None,
    lower: opt.Lower = False,
    text: opt.AsText = False,
    epochs: opt.Epochs = None,
    seconds: opt.Seconds = None,
    seed: opt.Seed = 0,
    model: opt.Model = "lbl",
    dim: opt.Dim = None,
    context: opt.Width = None,
    batch_size: opt.BatchSize = None,
    learning_rate: opt.Rate = None,
    dropout: opt.Dropout = None,
) -> None:
    """Grow trees from the word vectors of a model that was trained on a tree before.

    A random tree is trained first; its words' mean predicted vectors make the next
    tree, which is trained in turn. The vectors are those of the best model so far.
    The rounds are candidates of an ordinary comparison in DIR, whose page `hstree report`
    writes. Finished rounds are not done again.
    """
    from hstree.experiments.bootstrap import bootstrap as rounds_of
    from hstree.experiments.candidate import Candidate
    from hstree.report import write
    from hstree_cli.inputs import read_splits
    from hstree_cli.results import print_comparison

    of_step = {"batch_size": batch_size, "learning_rate": learning_rate, "dropout": dropout}
    options = opt.model_options(model, seed, dim=dim, context=context, **of_step)
    named = [Candidate.parse(text) for text in candidates or ["gmm"]]
    reads = [corpus, valid, test, *(file for one in named for file in one.files)]
    check_outputs(Output("-o", output, contents=()), reads=reads)
    so_far: list[Comparison] = []
    page = output / PAGE
    with showing_progress(folder=output, jobs=jobs, scheduler=scheduler):
        how: dict[str, Any] = {"lower": lower, "text": text, "min_count": min_count}
        splits = read_splits(corpus, valid, test, **how)
        for _ in rounds_of(
            splits,
            output,
            named,
            rounds=rounds,
            stop=opt.stopping_rule(epochs, seconds),
            force=force,
            updated=so_far.append,
            **options,
        ):
            write(so_far[-1], page)
    print_comparison(so_far[-1], page)


def embed(
    corpus: opt.CorpusName,
    candidate: Annotated[
        str,
        argument(
            metavar="CANDIDATE",
            help='A candidate that a text alone makes: huffman, classes, "sampled samples=500" '
            "or a tree file (default: huffman).",
            autocompletion=opt.candidate_names,
        ),
    ] = "huffman",
    *,
    output: Annotated[Path, option("--output -o", "A .vec, .txt, .bin or .npy.", "FILE")],
    force: opt.Force = False,
    seed: opt.Seed = 0,
    min_count: opt.MinCount = None,
    max_size: opt.MaxSize = None,
    lower: opt.Lower = False,
    as_text: opt.AsText = False,
    vocabulary: opt.VocabularyFile = None,
    model: opt.Model = "cbow",
    dim: opt.Dim = None,
    batch_size: opt.BatchSize = None,
    learning_rate: opt.Rate = None,
    epochs: opt.Epochs = None,
    seconds: opt.Seconds = None,
) -> None:
    """Train word vectors on every line of a corpus, as in word2vec.

    Binary trees with one code a word, such as Huffman's, train word by word where the
    extra fast is installed; --model "cbow online=false" or --batch-size trains in
    batches, as all other output layers do.

    The words are in the order of their counts, most frequent first, with <eos> and,
    if there is one, <unk>. gensim reads .vec, .txt and .bin with load_word2vec_format.
    Only .npy records the text of the training, so that a tree built from the vectors
    warns of test lines among it.
    """
    from hstree._files import cache_folder
    from hstree._text import plural
    from hstree.data.corpus import Corpus
    from hstree.data.vector_files import check_words
    from hstree.errors import OptionError
    from hstree.experiments.candidate import Candidate, TreeCandidate
    from hstree.models import kind_of, new_model
    from hstree.training.trainer import table_of
    from hstree_cli.inputs import read_as, read_vocabulary, refuse_options

    rule = {"epochs": epochs, "seconds": seconds}
    of_step = {"batch_size": batch_size, "learning_rate": learning_rate}
    options = opt.model_options(model, seed, dim=dim, **of_step, **rule)
    kind = kind_of(options).model
    one = Candidate.parse(candidate)
    if kind.is_language_model:
        raise OptionError(
            f"--model {options['model']} is a language model; `hstree evaluate CANDIDATE CORPUS "
            "--vectors-out FILE` writes its vectors"
        )
    if one.source is not None or not one.is_trained or one.models > 1:
        instead = 'give one candidate, such as "huffman"'
        if one.source is not None and one.models == 1:
            tree = f"`hstree build --method '{one.tree_candidate}' VECTORS -o tree.json`"
            instead = f"{tree}, then name tree.json in its place"
        raise OptionError(f"{one} is not one layer that a text alone makes; {instead}")
    reads = [corpus, vocabulary, *one.files]
    check_outputs(Output("-o", output, VECTOR_ENDINGS), reads=reads, force=force)
    with showing_progress():
        how: dict[str, Any] = {"lower": lower, "text": as_text}
        choice: dict[str, Any] = {"min_count": min_count, "max_size": max_size}
        if isinstance(one, TreeCandidate):
            others = {"min_count": min_count, "max_size": max_size}
            refuse_options(OF_TREE, vocabulary=vocabulary, **others)
            text = read_as(one.tree.labels, corpus, **how)
        else:
            words = None if vocabulary is None else read_vocabulary(vocabulary, **choice)
            text = Corpus.read(corpus, vocabulary=words, unk=None, **how, **choice)
        built = one.build(text, seed, None) if one.kind == "tree" else None
        spec = one.spec(text.counted_vocabulary(), built)
        if output.suffix in (".vec", ".txt", ".bin"):
            check_words(str(output), spec.labels)
        untrained = new_model(spec, **kind.for_vectors(spec, options))
        trained = untrained.fit(text, checkpoints=cache_folder() / "checkpoints")
        if trained.history_.interrupted:
            warn(
                "interrupted: these vectors are of the weights so far, which are written now; the "
                "same command with --force goes on"
            )
        vectors = trained.vectors(text)
        vectors.save(output)
        trained.remove_checkpoints()
    history = trained.history_
    if history.epochs:
        source = table_of(history.epochs)
        say(table(source.columns, source.rows))
    rows = [
        ("perplexity", f"of each {trained.predicts}, while training"),
        ("model", f"{trained.name} over {one}, {plural(len(spec.labels), 'label')}"),
        ("vectors", f"{len(vectors):,} of {vectors.dimension} numbers"),
        ("written", str(output)),
    ]
    say(facts([*corpus_facts(text), *rows]))
    if history.interrupted:
        raise typer.Exit(INTERRUPTED)


def classify(
    train: Annotated[Path, argument(metavar="TRAIN", help=f"Training samples: {SAMPLES}")],
    test: Annotated[Path, argument(metavar="TEST", help="Test samples in the same form.")],
    *,
    method: Annotated[
        str | None, option("--method -m", METHOD_HELP, "METHOD", autocompletion=opt.builder_names)
    ] = None,
    output: Annotated[Path, option("--output -o", "Folder of the model.", "DIR")] = Path("labels"),
    json: opt.JsonFile = None,
    force: opt.Force = False,
    C: Annotated[
        float, option("--C", "Inverse strength of the penalty; more fits closer.", "C")
    ] = 3.0,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Train a classifier of several labels a sample; print the precision of its first labels.

    The classifier is a probabilistic label tree: a tree of any method, over the
    labels' feature sums or frequencies, with a linear model for each child. In
    Python, `ProbabilisticLabelTreeClassifier.load("labels")` reads it.
    """
    from hstree._files import write_json
    from hstree._text import figure, plural
    from hstree.data.memory import peak_memory
    from hstree.data.multilabel import read_train_and_test
    from hstree.interop.sklearn import ProbabilisticLabelTreeClassifier
    from hstree.interop.sklearn.label_tree import FILES
    from hstree_cli.trees import builder_of

    chosen: dict[str, Any] = {}
    if method is not None:
        builder, options = builder_of(method, seed)
        chosen = {"builder": builder.name, "builder_options": options}
    outputs = Output("-o", output, contents=FILES), Output("--json", json)
    check_outputs(*outputs, reads=[train, test], force=force)
    with showing_progress(jobs=jobs):
        known, asked = read_train_and_test(train, test)
        began = time.perf_counter()
        model = ProbabilisticLabelTreeClassifier(**chosen, C=C, random_state=seed)
        model.fit(*known)
        fitted = time.perf_counter()
        scores = model.predict_proba(asked.X, k=max(KS))
        ended = time.perf_counter()
    lines = _figures(known, asked, scores)
    times = {"fit_seconds": fitted - began, "predict_seconds": ended - fitted}
    results = {"method": method, "figures": lines, **times, "peak_bytes": peak_memory()}
    n = asked.X.shape[0]
    with written((output, model.save), (json, lambda path: write_json(path, results))) as files:
        columns = ("k", *(name.replace("_", " ") for name in list(lines[0])[1:]))
        say(table(columns, [[str(k), *map(figure, of_k)] for k, *of_k in map(dict.values, lines)]))
        rows = [
            ("training", f"{known.X.shape[0]:,} samples, {known.Y.nnz:,} labels of them"),
            ("test", f"{n:,} samples, {asked.Y.nnz:,} labels of them"),
            ("sizes", f"{known.X.shape[1]:,} features, {known.Y.shape[1]:,} labels"),
            ("tree", f"{model.tree_.meta['method']}, {plural(model.tree_.n_nodes, 'node')}"),
            ("weights", f"{model.weight_.nnz:,}"),
            ("fitting", f"{figure(fitted - began)} s, the tree included"),
            (
                "predicting",
                f"{figure(ended - fitted)} s, {1000 * (ended - fitted) / n:.3f} ms each",
            ),
            ("memory", f"{peak_memory() / 2**20:,.0f} MiB at most"),
            *(("written", str(file)) for file in files),
        ]
        say(facts(rows))


def _figures(
    known: "MultilabelData", asked: "MultilabelData", scores: Any
) -> list[dict[str, float]]:
    """Return the figures of the first labels, in percent."""
    from hstree import metrics

    weight = metrics.inverse_propensity(known.Y)
    of_k = metrics.propensity_scored_precision_at_k
    return [
        {
            "k": k,
            "P@k": 100 * metrics.precision_at_k(asked.Y, scores, k),
            "propensity-scored": 100 * of_k(asked.Y, scores, weight, k),
            "nDCG@k": 100 * metrics.ndcg_at_k(asked.Y, scores, k),
        }
        for k in KS
    ]
