"""Commands that train: evaluate, bootstrap, embed and classify."""

import time
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
    from hstree.experiments.candidate import Candidate

ROUNDS_HELP = (
    'Candidates of the rounds after the first, built from vectors: gmm, "classes '
    'cluster_by=vectors" (default: gmm). The last candidate is used in all later rounds.'
)
#: Accepted endings of files of word vectors.
VECTOR_ENDINGS = (".vec", ".txt", ".bin", ".npy")
C_HELP = (
    "Inverse of the regularization strength (default: 10 if each sample has one label, else 3)."
)
#: Formats of a file of samples.
SAMPLES = (
    'one per line: "label,label feature:value ..." after an optional header line "N D L", or '
    '"__label__a __label__b text" as in fastText.'
)
METHOD_HELP = (
    'Method with its options, such as "kmeans arity=16" (default: "kmeans arity=10 '
    'max_leaves=100").'
)
#: Reason why no option may select words if a tree is given.
WORDS_OF_TREE = "the vocabulary is the set of labels in the tree"
#: Numbers of most probable labels that are scored.
KS = (1, 3, 5)


@opt.spread_options
def evaluate(
    candidate: Annotated[
        str,
        argument(
            metavar="CANDIDATE",
            help=f"{opt.CANDIDATE_HELP} or a tree file.",
            autocompletion=opt.candidate_names,
        ),
    ],
    corpus: opt.CorpusName,
    *,
    save: Annotated[Path | None, option("--save", "Save the trained model.", "MODEL_DIR")] = None,
    vectors_out: Annotated[
        Path | None,
        option("--vectors-out", "Write the mean predicted vector of each word.", "FILE.npy"),
    ] = None,
    json: opt.JsonFile = None,
    force: opt.Force = False,
    reading: opt.SplitOptions,
    training: opt.TrainingOptions,
) -> None:
    """Train a model with one tree or output layer and print its perplexity.

    By default, the last 10% of the lines in CORPUS are the test split, and the 10% before
    them are the validation split. If only --valid or only --test is given, the other split
    is the last 10%. The vocabulary is that of the tree, or that of the training split if
    there is no tree file. Training takes at most 20 epochs. Ctrl-C stops the training and
    keeps the best weights so far; the same command continues it (with --force if its
    outputs exist). `hstree score` applies a saved model to another text.
    """
    from hstree._files import cache_folder, json_hash, remove_unused
    from hstree.experiments import results
    from hstree.experiments.candidate import Candidate
    from hstree.experiments.compare import evaluate as train
    from hstree.layers.saved import TREE_FILES
    from hstree_cli.inputs import read_splits, refuse_options
    from hstree_cli.results import print_evaluation

    options = training.model_options()
    stop = training.stopping_rule()

    def warn_if_interrupted(trained: Any) -> None:
        """Warn of an interrupted training before the model is scored, which takes a moment."""
        if trained.history_.interrupted:
            hint = " with --force" if save or json or vectors_out else ""
            warn(
                "interrupted: scoring the best weights so far (Ctrl-C again ends at once); the "
                f"same command{hint} continues the training"
            )

    with showing_progress():
        parsed = Candidate.parse(candidate)
        if parsed.tree is not None:
            refuse_options(
                WORDS_OF_TREE, vocabulary=reading.vocabulary, min_count=reading.min_count
            )
        check_outputs(
            Output("--json", json),
            Output("--vectors-out", vectors_out, (".npy",)),
            Output("--save", save, contents=tuple(TREE_FILES)),
            reads=[corpus, *reading.files, *parsed.files],
            force=force,
        )
        splits = read_splits(corpus, reading, [parsed])
        # The key of all inputs and options, by which the same command finds its checkpoint
        texts = [part.record for part in splits]
        key = json_hash({"candidate": parsed.name, "texts": texts, "stop": str(stop), **options})
        work = cache_folder() / "evaluations" / key[:16]
        evaluation = train(
            parsed, splits, stop=stop, folder=work, trained=warn_if_interrupted, **options
        )

    # All outputs are written before anything is printed
    head = {"format": results.FORMAT, "version": results.VERSION}
    with written(
        (save, evaluation.model.save),
        (json, lambda path: results.write_struct(path, evaluation.comparison, **head)),
        (vectors_out, lambda path: _save_mean_vectors(evaluation.model, splits.train, path)),
    ) as files:
        print_evaluation(evaluation, files)
    if evaluation.interrupted:
        raise typer.Exit(INTERRUPTED)
    remove_unused(work)  # an interrupted training would continue from there


def _save_mean_vectors(model: Any, train: "Corpus", path: Path) -> None:
    """Save the mean predicted vectors of a model."""
    with showing_progress():
        model.mean_predicted_vectors(model.reencode(train)).save(path)


@opt.spread_options
def bootstrap(
    corpus: opt.CorpusName,
    candidates: Annotated[
        list[str] | None,
        argument(metavar="CANDIDATE", help=ROUNDS_HELP, autocompletion=opt.builder_names),
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Output folder for all rounds.", "DIR")],
    rounds: Annotated[
        int | None,
        option(
            "--rounds", "Number of trees after the first (default: one per CANDIDATE).", "N", min=1
        ),
    ] = None,
    jobs: opt.Jobs = None,
    scheduler: opt.Scheduler = None,
    force: opt.Replace = False,
    reading: opt.SplitOptions,
    training: opt.TrainingOptions,
) -> None:
    """Build trees in rounds, each from the word vectors of the best model so far.

    The first round trains a model with a random tree. Each later round builds a tree from the
    mean predicted vectors of the best model so far, and trains a model with this tree. DIR
    contains a comparison whose candidates are the rounds. Finished rounds are not repeated.
    """
    from hstree.experiments.bootstrap import bootstrap as bootstrap_rounds
    from hstree.experiments.candidate import Candidate
    from hstree.report import write
    from hstree_cli.inputs import read_splits
    from hstree_cli.results import print_comparison

    options = training.model_options()
    parsed = [Candidate.parse(text) for text in candidates or ["gmm"]]
    files = [file for candidate in parsed for file in candidate.files]
    check_outputs(Output("-o", output, contents=()), reads=[corpus, *reading.files, *files])
    page = output / PAGE
    with showing_progress(folder=output, jobs=jobs, scheduler=scheduler):
        splits = read_splits(corpus, reading)
        comparison = bootstrap_rounds(
            splits,
            output,
            parsed,
            rounds=rounds,
            stop=training.stopping_rule(),
            force=force,
            updated=lambda so_far: write(so_far, page),
            **options,
        )
    print_comparison(comparison, page)


@opt.spread_options
def embed(
    corpus: opt.CorpusName,
    candidate: Annotated[
        str,
        argument(
            metavar="CANDIDATE",
            help='Candidate that needs only a text: huffman, classes, "sampled samples=500", or a '
            "tree file (default: huffman).",
            autocompletion=opt.candidate_names,
        ),
    ] = "huffman",
    *,
    output: Annotated[
        Path, option("--output -o", "Output file (.vec, .txt, .bin or .npy).", "FILE")
    ],
    force: opt.Force = False,
    vocabulary: opt.VocabularyFile = None,
    reading: opt.WordOptions,
    training: opt.VectorTrainingOptions,
) -> None:
    """Train word vectors on every line of a corpus, as word2vec does.

    If the extra fast is installed, binary trees with one code per word, such as the Huffman
    tree, are trained word by word. All other output layers are trained in batches. --model
    "cbow online=false" or --batch-size selects batches for every output layer.

    The words are sorted by frequency and include <eos>, and <unk> if the text has unknown
    words. gensim reads .vec, .txt and .bin with load_word2vec_format. Only .npy records the
    training text, so that later commands can warn of test lines in it.
    """
    from hstree._files import cache_folder
    from hstree._text import plural
    from hstree.data.vector_files import check_words
    from hstree.experiments.candidate import Candidate
    from hstree.models import kind_of, new_model
    from hstree.training.trainer import epoch_table

    options = training.model_options(epochs=training.epochs, seconds=training.seconds)
    kind = kind_of(options).model
    parsed = Candidate.parse(candidate)
    _check_embedding(options["model"], kind.is_language_model, parsed)
    reads = [corpus, vocabulary, *parsed.files]
    check_outputs(Output("-o", output, VECTOR_ENDINGS), reads=reads, force=force)

    with showing_progress():
        # The labels are checked before the training: not every file format can hold all labels
        text = _read_for_embedding(corpus, parsed, vocabulary, reading).select_words()
        tree = parsed.build(text, training.seed, None) if parsed.has_tree else None
        spec = parsed.spec(text.counted_vocabulary(), tree)
        if output.suffix in (".vec", ".txt", ".bin"):
            check_words(str(output), spec.labels)
        untrained: Any = new_model(spec, **kind.for_vectors(spec, options))
        trained = untrained.fit(text, checkpoints=cache_folder() / "checkpoints")
        if trained.history_.interrupted:
            warn(
                "interrupted: writing the vectors trained so far; the same command with --force "
                "continues the training"
            )
        vectors = trained.vectors(text)
        # Checkpoints stay until the file is written
        vectors.save(output)
        trained.remove_checkpoints()

    history = trained.history_
    if history.epochs:
        epochs_table = epoch_table(history.epochs)
        say(table(epochs_table.columns, epochs_table.rows))
    rows = [
        ("perplexity", f"per {trained.predicts}, during training"),
        ("model", f"{trained.name} over {parsed}, {plural(len(spec.labels), 'label')}"),
        ("vectors", f"{len(vectors):,} of {vectors.dimension} numbers"),
        ("written", str(output)),
    ]
    say(facts([*corpus_facts(text), *rows]))
    if history.interrupted:
        raise typer.Exit(INTERRUPTED)


def _check_embedding(model: str, is_language_model: bool, candidate: "Candidate") -> None:
    """Refuse a language model, and a candidate that cannot be trained on a text alone."""
    from hstree.errors import OptionError

    if is_language_model:
        raise OptionError(
            f"--model {model} is a language model; `hstree evaluate CANDIDATE CORPUS "
            "--vectors-out FILE` writes its vectors"
        )
    if candidate.source is None and candidate.is_trained and candidate.models == 1:
        return
    # An ensemble, an n-gram model, or a tree that is built from vectors
    hint = 'use one such as "huffman"'
    if candidate.source is not None and candidate.models == 1:
        build = f"`hstree build --method '{candidate.tree_candidate}' VECTORS -o tree.json`"
        hint = f"run {build} and use tree.json as the candidate"
    raise OptionError(f"{candidate} is not one output layer that needs only a text; {hint}")


def _read_for_embedding(
    corpus: str,
    candidate: "Candidate",
    vocabulary: Path | None,
    reading: opt.WordOptions,
) -> "Corpus":
    """Read a corpus over the labels of a tree file, or over the selected words."""
    from hstree.data.corpus import Corpus
    from hstree_cli.inputs import read_vocabulary, read_with_labels, refuse_options

    # The labels of a tree file are the words, so options that select words are refused
    selection: dict[str, Any] = {"min_count": reading.min_count, "max_size": reading.max_size}
    if candidate.tree is not None:
        refuse_options(WORDS_OF_TREE, vocabulary=vocabulary, **selection)
        return read_with_labels(
            candidate.tree.labels, corpus, lower=reading.lower, text=reading.text
        )
    words = None
    if vocabulary is not None:
        words = read_vocabulary(vocabulary, **selection)
    return Corpus.read(
        corpus, vocabulary=words, unk=None, lower=reading.lower, text=reading.text, **selection
    )


def classify(
    train: Annotated[Path, argument(metavar="TRAIN", help=f"Training samples, {SAMPLES}")],
    test: Annotated[Path, argument(metavar="TEST", help="Test samples in the same format.")],
    *,
    method: Annotated[
        str | None, option("--method -m", METHOD_HELP, "METHOD", autocompletion=opt.builder_names)
    ] = None,
    output: Annotated[Path, option("--output -o", "Output folder.", "DIR")] = Path("labels"),
    json: opt.JsonFile = None,
    force: opt.Force = False,
    C: Annotated[float | None, option("--C", C_HELP, "C")] = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
) -> None:
    """Train a multi-label classifier and print the precision of its most probable labels.

    The classifier is a probabilistic label tree: a tree with a linear model for each child.
    Any method can build the tree, from the feature sums or the frequencies of the labels.
    In Python, `ProbabilisticLabelTreeClassifier.load("labels")` loads the model.
    """
    from hstree import metrics
    from hstree._files import write_json
    from hstree._text import format_number, plural
    from hstree.data.fasttext import TextData, read_train_and_test
    from hstree.data.memory import peak_memory
    from hstree.interop.sklearn import ProbabilisticLabelTreeClassifier
    from hstree.interop.sklearn.label_tree_files import FILES
    from hstree_cli.trees import read_method

    parameters: dict[str, Any] = {}
    if method is not None:
        builder, builder_options = read_method(method, seed)
        parameters = {"builder": builder.name, "builder_options": builder_options}
    if C is not None:
        parameters["C"] = C
    check_outputs(
        Output("-o", output, contents=FILES),
        Output("--json", json),
        reads=[train, test],
        force=force,
    )
    with showing_progress(jobs=jobs):
        train_data, test_data = read_train_and_test(train, test)
        has_texts = isinstance(train_data, TextData)
        start = time.perf_counter()
        model = ProbabilisticLabelTreeClassifier(**parameters, random_state=seed)
        model.fit(train_data.X, train_data.labels if has_texts else train_data.Y)
        fit_seconds = time.perf_counter() - start
        start = time.perf_counter()
        scores = model.predict_proba(test_data.X, k=max(KS))
        predict_seconds = time.perf_counter() - start
        if has_texts:
            model.words_ = train_data.words

    # Labels that occur only in the test file are in the last columns
    scores.resize(test_data.Y.shape)
    # Percentages for each k; propensities come from the training labels
    weight = metrics.inverse_propensity(train_data.Y)
    precisions = [
        {
            "k": k,
            "P@k": 100 * metrics.precision_at_k(test_data.Y, scores, k),
            "propensity-scored": 100
            * metrics.propensity_scored_precision_at_k(test_data.Y, scores, weight, k),
            "nDCG@k": 100 * metrics.ndcg_at_k(test_data.Y, scores, k),
        }
        for k in KS
    ]
    results = {
        "method": method,
        "figures": precisions,
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "peak_bytes": peak_memory(),
    }
    with written((output, model.save), (json, lambda path: write_json(path, results))) as files:
        lines = [
            [f"{k}", *map(format_number, values)] for k, *values in map(dict.values, precisions)
        ]
        say(table(list(precisions[0]), lines))
        n_train, n_features = train_data.X.shape
        n_test, n_labels = test_data.Y.shape
        rows = [
            ("training", f"{n_train:,} samples with {train_data.Y.nnz:,} labels"),
            ("test", f"{n_test:,} samples with {test_data.Y.nnz:,} labels"),
            ("sizes", f"{n_features:,} features, {n_labels:,} labels"),
            ("tree", f"{model.tree_.meta['method']}, {plural(model.tree_.n_nodes, 'node')}"),
            ("fitting", f"{format_number(fit_seconds)} s, including the tree"),
            ("predicting", f"{format_number(predict_seconds)} s"),
            ("peak memory", f"{peak_memory() / 2**20:,.0f} MiB"),
            *(("written", str(file)) for file in files),
        ]
        say(facts(rows))
