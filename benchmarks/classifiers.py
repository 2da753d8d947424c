"""Classifiers of many classes and labels: those of hstree and of other libraries on shared sets.

Every model is fitted in its own process, on one thread. `C`, the inverse strength of the penalty,
is chosen from one grid for all: by the accuracy on a fifth of the training samples, after training
on the others. The table has the accuracy (precision at 1 for multi-label sets) and the log-loss on
the test samples, once with that C and once with a model's own default ("at default"), and for the
first the CPU seconds and the peak memory above that of the data. A model that has not ended after
`--limit` seconds has no results.

newsgroups   Twenty newsgroups, TF-IDF; "taxonomy" is the tree of the groups' names. From
             ``$HSTREE_TEST_DATA/20news/20news-bydate.tar.xz`` where that variable is set, else
             scikit-learn's, which downloads them once.
digits       scikit-learn's 8 x 8 pictures of digits.
planted-V    V classes drawn from a seed: texts of 40 words. A class has some words alone, shares
             some with nine others and some with ninety-nine; TF-IDF of 5 V words.
bibtex       Bibtex, multi-label (``$HSTREE_TEST_DATA/multilabel``).
FOLDER       A folder with train.txt and test.txt: texts in the format of fastText, with one label
             each, as TF-IDF, or multi-label data in the format of `read_multilabel`.

SGDClassifier has ``alpha = 1 / (C n)``. Other options are the models' defaults. Models of packages
that are not installed are left out: ``pip install napkinxc omikuji cffi hiclass``.

    python -m benchmarks.classifiers [--sets SET ...] [--models MODEL ...] [--C C ...]
"""

from __future__ import annotations

import json
import os
import resource
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.datasets import fetch_20newsgroups, load_digits
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split

import hstree
from benchmarks import common
from benchmarks.common import in_fork
from hstree._arrays import Array
from hstree._files import read_unpacked
from hstree.data.fasttext import is_fasttext, parse_fasttext
from hstree.data.multilabel import parse_train_and_test, read_multilabel, write_multilabel
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier, ProbabilisticLabelTreeClassifier

#: Words of a planted text; the fraction of them that are of its topic; words of a topic. A hundred
#: classes share a quarter of the words of a topic, and ten classes share another quarter.
TEXT, TOPICAL, TOPIC = 40, 0.3, 20

SETS = ["newsgroups", "digits", "planted-1000", "bibtex"]

common.PACKAGES = (*common.PACKAGES, "napkinxc", "omikuji", "hiclass")


class Data(NamedTuple):
    """A set: samples, and their classes as numbers (n,), or labels as an indicator (n, V)."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    names: Sequence[str] = ()  # of the classes

    @property
    def is_multilabel(self) -> bool:
        """Whether the data are multi-label."""
        return scipy.sparse.issparse(self.y_train)


class Fitted(NamedTuple):
    """A fitted model: functions of samples."""

    ranked: Callable[[Any], Array]  # the most probable class (n,), or five labels (n, 5)
    log_proba: Callable[[Any], Array] | None = None  # (n, V)


#: Fits on a training set, with some C or the model's own.
Fit = Callable[[Data, float | None], Fitted]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, help="planted-V for V classes, too")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--C", nargs="+", type=float, default=[1.0, 3.0, 10.0, 30.0, 100.0])
    parser.add_argument("--samples", type=int, default=5, help="training samples a planted class")
    parser.add_argument(
        "--held-out", action="store_true", help="score on a fifth of the training samples"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds of one fit")
    parser.add_argument("--data", help="a tar of the newsgroups (default: see above)")
    options = parser.parse_args()
    common.report("classifiers", compare(options), options.json)


def compare(options: Any) -> Iterator[dict[str, Any]]:
    """Fit and score the models on each set."""
    for name in options.sets:
        data = load(name, options)
        if options.held_out:
            data = held_out(data)
        if scipy.sparse.issparse(data.X_train):
            data = data._replace(X_train=narrow(data.X_train), X_test=narrow(data.X_test))
        for model in options.models:
            fit = MODELS[model]
            if find_spec(model.split()[0].lower()) is None and model.split()[0] in PACKAGES:
                continue
            if model in ONLY and not ONLY[model](data):
                continue
            yield {"set": os.path.basename(os.path.normpath(name)), "model": model} | tune(
                fit, data, options.C, options.limit
            )


def tune(fit: Fit, data: Data, grid: Sequence[float], limit: float) -> dict[str, Any]:
    """Choose C, fit, and return the results of a model."""
    part = held_out(data)
    failure = {"C": f"failed, or over {limit:.0f} s"}
    best = grid[0]
    if len(grid) > 1:
        trials = [in_fork(fit_and_score, fit, part, C, limit=limit) for C in grid]
        if None in trials:
            return failure
        best = grid[int(np.argmax([trial["P@1"] for trial in trials]))]
    chosen = in_fork(fit_and_score, fit, data, best, limit=limit)
    default = in_fork(fit_and_score, fit, data, None, limit=limit)
    if chosen is None or default is None:
        return failure
    return {
        "C": f"{best:g}",
        **chosen,
        "P@1 at default": default["P@1"],
        "log-loss at default": default["log-loss"],
    }


def held_out(data: Data) -> Data:
    """Return the training samples, a fifth of them as the test samples."""
    samples = np.arange(data.X_train.shape[0])
    train, valid = train_test_split(samples, test_size=0.2, random_state=0)
    return data._replace(
        X_train=data.X_train[train],
        y_train=data.y_train[train],
        X_test=data.X_train[valid],
        y_test=data.y_train[valid],
    )


def fit_and_score(fit: Fit, data: Data, C: float | None) -> dict[str, Any]:
    """Return accuracy, log-loss, seconds and memory of one fit."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    model = fit(data, C)
    fitted = time.process_time()
    ranked = model.ranked(data.X_test)
    predicted = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    samples = np.arange(len(ranked))
    precision_at_5 = None
    log_loss = None
    if data.is_multilabel:
        # (n, 5) whether each of the five most probable labels is right
        is_right = np.asarray(data.y_test.toarray()[samples[:, None], ranked])
        precision_at_1 = 100 * float(is_right[:, 0].mean())
        precision_at_5 = 100 * float(is_right.mean())
    else:
        precision_at_1 = 100 * float((ranked == data.y_test).mean())
    if model.log_proba is not None and not data.is_multilabel:
        log_likelihood = model.log_proba(data.X_test)[samples, data.y_test]
        log_loss = -float(np.maximum(log_likelihood, np.log(np.finfo(float).tiny)).mean())
    return {
        "P@1": precision_at_1,
        "P@5": precision_at_5,
        "log-loss": log_loss,
        "fit s": fitted - began,
        "predict s": predicted - fitted,
        "MB": (peak - before) / 1024,
    }


def load(name: str, options: Any) -> Data:
    """Return a set by its name."""
    if name == "newsgroups":
        return text_data(*(posts(part, options.data) for part in PARTS))
    if os.path.isdir(name):
        paths = [os.path.join(name, f"{part}.txt") for part in PARTS]
        files = [(path, read_unpacked(path)) for path in paths]
        if not is_fasttext(files[0][1]):
            train, test = parse_train_and_test(*files)
            return Data(train.X, train.Y, test.X, test.Y)
        read = map(parse_fasttext, files)
        return text_data(*((texts, [first for first, *_ in labels]) for texts, labels in read))
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
        return Data(X_train, y_train, X_test, y_test)
    if name == "bibtex":
        folder = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "multilabel")
        train, test = (
            read_multilabel(os.path.join(folder, f"bibtex-{part}.txt.xz")) for part in PARTS
        )
        return Data(train.X, train.Y, test.X, test.Y)
    kind, _, number = name.partition("-")
    if kind != "planted" or not number.isdigit():
        raise SystemExit(f"no set is called {name!r}; planted-1000 is one of 1,000 classes")
    return planted(int(number), options.samples * int(number))


PARTS = ("train", "test")


def narrow(X: Any) -> Any:
    """Return a CSR array with indices of 32 bits, which all libraries take."""
    content = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return scipy.sparse.csr_array(content, shape=X.shape)


def text_data(train: tuple[list[str], list[str]], test: tuple[list[str], list[str]]) -> Data:
    """Return texts and their classes as TF-IDF; the classes are in the order of their names."""
    features = TfidfVectorizer(sublinear_tf=True)
    X_train, X_test = features.fit_transform(train[0]), features.transform(test[0])
    names, y_train = np.unique(train[1], return_inverse=True)
    y_test = np.searchsorted(names, test[1])
    to_rows = scipy.sparse.csr_array
    return Data(to_rows(X_train), y_train, to_rows(X_test), y_test, names.tolist())


def posts(part: str, path: str | None = None) -> tuple[list[str], list[str]]:
    """Return the texts and the groups of a split of twenty newsgroups."""
    folder = os.environ.get("HSTREE_TEST_DATA")
    if path is None and folder:
        path = os.path.join(folder, "20news", "20news-bydate.tar.xz")
    if path is None:
        data: Any = fetch_20newsgroups(subset=part)
        return data.data, [data.target_names[group] for group in data.target]
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and os.path.basename(member.name) == f"{part}.jsonl":
                records = [json.loads(line) for line in file]
                return [r["text"] for r in records], [r["group"] for r in records]
    raise SystemExit(f"{path} holds no {part}.jsonl")


def planted(n_classes: int, n_train: int, n_test: int = 2000) -> Data:
    """Draw texts of classes whose topics share words within tens and within hundreds of classes."""
    rng, n_words = np.random.default_rng(0), 5 * n_classes
    number = np.arange(n_classes)
    topics = rng.integers(n_words, size=(n_classes, TOPIC))
    topics[:, : TOPIC // 2] = topics[number // 10 * 10, : TOPIC // 2]
    topics[:, : TOPIC // 4] = topics[number // 100 * 100, : TOPIC // 4]
    topics = rng.permutation(topics)  # the number of a class says nothing of its topic
    share = 1 / np.sqrt(1 + number)
    y = rng.choice(n_classes, n_train + n_test, p=share / share.sum())
    y[:n_classes] = number
    X = texts(y, topics, n_words, rng).astype(np.float32)
    return Data(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def texts(
    y: Array, topics: Array, n_words: int, rng: Any, *, length: int = TEXT, topical: float = TOPICAL
) -> Any:
    """Draw texts of classes (n,), as TF-IDF: some words of their topics, the others common ones."""
    common = (n_words * rng.random((len(y), length)) ** 3).astype(np.int64)
    specific = topics[y[:, None], rng.integers(TOPIC, size=(len(y), length))]
    words = np.where(rng.random((len(y), length)) < topical, specific, common).ravel()
    content = np.ones(len(words)), words, np.arange(0, len(words) + 1, length)
    counts = scipy.sparse.csr_array(content, shape=(len(y), n_words))
    counts.sum_duplicates()
    return scipy.sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts))


def by_scikit_learn(make: Callable[[Data, dict[str, float]], Any]) -> Fit:
    """Return the fit of an estimator, which `make` makes of the data and of C, if given."""

    def fit(data: Data, C: float | None) -> Fitted:
        model = make(data, {} if C is None else {"C": C})
        model.fit(data.X_train, data.y_train)
        if not data.is_multilabel:
            return Fitted(model.predict, lambda X: every_class(model, X, data))
        return Fitted(lambda X: first_five(model.predict_proba(X, k=5)))

    return fit


def first_five(proba: Any) -> Array:
    """Return the five most probable labels (n, 5), the most probable first."""
    return np.argsort(-proba.toarray(), axis=1, kind="stable")[:, :5]


def every_class(model: Any, X: Any, data: Data) -> Array:
    """Return log-probabilities (n, V), of classes that the training lacked, too."""
    with np.errstate(divide="ignore"):
        log_proba = np.log(model.predict_proba(X))
    n_classes = 1 + max(data.y_train.max(), data.y_test.max())
    if len(model.classes_) == n_classes:
        return log_proba
    every = np.full((X.shape[0], n_classes), -np.inf)
    every[:, model.classes_] = log_proba
    return every


def logistic_regression(data: Data, C: dict[str, float]) -> Any:
    """Return scikit-learn's multinomial model."""
    return LogisticRegression(max_iter=1000, **C)


def sgd(data: Data, C: dict[str, float]) -> Any:
    """Return scikit-learn's stochastic one."""
    alpha = {"alpha": 1 / (C["C"] * data.X_train.shape[0])} if C else {}
    return SGDClassifier(loss="log_loss", random_state=0, **alpha)


def taxonomy(data: Data, C: dict[str, float]) -> Any:
    """Return the classifier on the tree of the classes' names."""
    number = {name: str(i) for i, name in enumerate(data.names)}
    parts = [name.split(".") for name in data.names]
    # levels of each name below one root: alt, alt.atheism
    tree = hstree.Tree.from_taxonomy(
        [["all", *(".".join(part[: i + 1]) for i in range(len(part)))] for part in parts]
    )
    labels = [number[label] for label in tree.labels]
    return HierarchicalSoftmaxClassifier(
        tree=hstree.Tree(labels, tree.child_start, tree.child), **C
    )


def label_tree(data: Data, C: dict[str, float], scaling: str = "auto") -> Any:
    """Return hstree's probabilistic label tree."""
    return ProbabilisticLabelTreeClassifier(scaling=scaling, **C)


def hiclass(data: Data, C: float | None) -> Fitted:
    """Fit HiClass: a logistic regression at each inner node of the names' tree."""
    from hiclass import LocalClassifierPerParentNode

    paths = [name.split(".") for name in data.names]
    depth = max(map(len, paths))
    levels = np.array([path + [""] * (depth - len(path)) for path in paths], object)
    number = {tuple(path): i for i, path in enumerate(paths)}
    local = LogisticRegression(max_iter=1000, **({} if C is None else {"C": C}))
    model = LocalClassifierPerParentNode(local_classifier=local)
    model.fit(scipy.sparse.csr_matrix(data.X_train), levels[data.y_train])

    def predict(X: Any) -> Array:
        predicted = model.predict(scipy.sparse.csr_matrix(X))
        return np.array([number.get(tuple(filter(None, row)), -1) for row in predicted])

    return Fitted(predict)


def napkinxc(kind: str) -> Fit:
    """Return the fit of a model of napkinXC, on one thread; its weights are in a folder."""

    def fit(data: Data, C: float | None) -> Fitted:
        from napkinxc import models

        folder = tempfile.mkdtemp()
        options = {} if C is None else {"liblinear_c": C}
        model = getattr(models, kind)(folder, threads=1, seed=0, verbose=0, **options)
        Y = indicator(data.y_train)
        labels = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(Y.shape[0])]
        model.fit(scipy.sparse.csr_matrix(data.X_train), labels)
        k = 5 if data.is_multilabel else 1

        return Fitted(lambda X: label_array(model.predict(scipy.sparse.csr_matrix(X), top_k=k), k))

    return fit


def omikuji(data: Data, C: float | None) -> Fitted:
    """Fit omikuji's forest of three trees, its default, on one thread."""
    from omikuji import Model

    with open(os.devnull, "w") as nothing:  # it prints its progress; this process is its own
        for stream in (1, 2):
            os.dup2(nothing.fileno(), stream)
    parameters = Model.default_hyper_param()
    if C is not None:
        parameters.linear_c = C
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "train.txt")
        write_multilabel(file, data.X_train, indicator(data.y_train))
        model = Model.train_on_data(file, parameters, n_threads=1)
    model.init_prediction_thread_pool(1)
    k = 5 if data.is_multilabel else 1

    def predict(X: Any) -> Array:
        X = scipy.sparse.csr_array(X)
        rows = (slice(X.indptr[i], X.indptr[i + 1]) for i in range(X.shape[0]))
        pairs = (zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True) for row in rows)
        return label_array([[label for label, _ in model.predict(p, top_k=k)] for p in pairs], k)

    return Fitted(predict)


def indicator(y: Any) -> Any:
    """Return classes (n,) or labels as a CSR array (n, V)."""
    if scipy.sparse.issparse(y):
        return scipy.sparse.csr_array(y)
    return scipy.sparse.csr_array((np.ones(len(y), np.int8), y, np.arange(len(y) + 1)))


def label_array(lists: Sequence[Sequence[int]], k: int) -> Array:
    """Return lists of labels, the most probable first, as an array (n, k), or (n,) for k = 1."""
    array = np.array([(list(labels) + [-1] * k)[:k] for labels in lists])
    return array[:, 0] if k == 1 else array


MODELS: dict[str, Fit] = {
    "LogisticRegression": by_scikit_learn(logistic_regression),
    "SGDClassifier": by_scikit_learn(sgd),
    "hstree default": by_scikit_learn(lambda data, C: HierarchicalSoftmaxClassifier(**C)),
    "hstree flat": by_scikit_learn(lambda data, C: HierarchicalSoftmaxClassifier("flat", **C)),
    "hstree gmm": by_scikit_learn(lambda data, C: HierarchicalSoftmaxClassifier("gmm", **C)),
    "hstree taxonomy": by_scikit_learn(taxonomy),
    "hstree label tree": by_scikit_learn(label_tree),
    "hstree tfidf": by_scikit_learn(partial(label_tree, scaling="tfidf")),
    "hstree unit": by_scikit_learn(partial(label_tree, scaling="unit")),
    "napkinXC PLT": napkinxc("PLT"),
    "napkinXC HSM": napkinxc("HSM"),
    "omikuji": omikuji,
    "HiClass": hiclass,
}
PACKAGES = {"napkinXC", "omikuji", "HiClass"}


def _one_class(data: Data) -> bool:
    return not data.is_multilabel


def _is_multilabel(data: Data) -> bool:
    return data.is_multilabel


def _has_names(data: Data) -> bool:
    return len(data.names) > 0


def _is_many(data: Data) -> bool:
    return not data.is_multilabel and len(np.unique(data.y_train)) > 256


#: Sets that some models are for.
ONLY: dict[str, Callable[[Data], bool]] = {
    **dict.fromkeys(("LogisticRegression", "SGDClassifier", "hstree default"), _one_class),
    "hstree gmm": _one_class,
    "hstree flat": _is_many,  # the default of few classes
    **dict.fromkeys(("hstree tfidf", "hstree unit"), _is_multilabel),
    "napkinXC HSM": _one_class,
    **dict.fromkeys(("hstree taxonomy", "HiClass"), _has_names),
}


if __name__ == "__main__":
    main()
