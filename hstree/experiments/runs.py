"""Kept runs: finished trainings, baselines and trees, which are read instead of done again.

The folder of a run has the tree, the trained model, the mean predicted vectors and, written last,
``result.json``, whose key is a hash of content, options and version; a folder with another key is
done anew. The negative log-likelihood of each validation and test token is kept beside it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from hstree._compiled import kernels, n_threads
from hstree._files import (
    hash_of,
    make_folder,
    replacing,
    replacing_together,
    write_array,
    write_json,
)
from hstree._typing import Float64, Int64
from hstree._version import __version__
from hstree.builders import BuilderInput, build
from hstree.builders.registry import is_recorded, recorded
from hstree.data.text_score import TextScore, perplexity
from hstree.data.vector_files import read_npy
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError, HstreeError, InputError
from hstree.experiments.evaluation import Splits, evaluate
from hstree.experiments.results import BaselineResult, RunResult, Split, decode, finite
from hstree.layers.registry import LayerSpec, layer_spec
from hstree.models import Model, config_of
from hstree.models import load as load_model
from hstree.models.files import content_key
from hstree.tree import Tree, load

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Files of a finished run, and the one that is written last.
ARTEFACTS = ("model", "vectors.npy", "vectors.labels.tsv")
RESULT = "result.json"
#: Files of the negative log-likelihood of every token of a split, as `nll_of` keeps them.
NLL: dict[Split, str] = {"valid": "valid_nll.npy", "test": "test_nll.npy"}
#: Folder of the states of a training that is not finished.
CHECKPOINTS = "checkpoints"
#: Seconds that building the tree took.
BUILD = "build.json"
#: File that the process at work in a folder locks.
LOCK = ".lock"
#: As Chen & Goodman (1999) recommend: three discounts, estimated from the counts.
DISCOUNT: Literal["modified"] = "modified"

R = TypeVar("R", RunResult, BaselineResult)


def run(
    output: Tree | LayerSpec,
    splits: Splits,
    folder: str | os.PathLike[str],
    *,
    score_train: bool = True,
    warm_start: str | os.PathLike[str] | None = None,
    **options: Any,
) -> RunResult:
    """Train and score an output layer, or return the result of a finished run of the same.

    Parameters
    ----------
    output : Tree or LayerSpec
    splits : Splits
    folder : path
        Made if it is missing. Gets ``tree.json`` for a tree, ``model/``, ``vectors.npy`` with its
        ``vectors.labels.tsv``, ``valid_nll.npy``, ``test_nll.npy`` and ``result.json``.
    score_train : bool, default True
        Whether a new run scores the training split.
    warm_start : path, optional
        Folder of a finished run, with whose context model the training begins (`Model.fit`).
    **options
        Options of `hstree.models.new_model`.

    Returns
    -------
    RunResult
        With its key.

    Raises
    ------
    FileFormatError
        When the folder cannot be written, or the model to begin with cannot be read.
    KeyboardInterrupt
        When the training was interrupted. The folder has got checkpoints, from which the same call
        goes on.
    """
    home = Path(folder)
    spec = output if isinstance(output, LayerSpec) else layer_spec(output)
    key = key_of(spec, splits, warm_start, **options)
    if (kept := finished(home, key)) is not None:
        shutil.rmtree(home / CHECKPOINTS, ignore_errors=True)  # left by a kill at its end
        return kept
    evaluation = evaluate(
        spec,
        splits,
        trained=_raise_if_interrupted,
        score_train=score_train,
        checkpoints=home / CHECKPOINTS,
        warm_start=None if warm_start is None else load_model(Path(warm_start) / "model"),
        **options,
    )
    make_folder(home)
    for name in (RESULT, *NLL.values()):
        (home / name).unlink(missing_ok=True)  # from here on they would be of other files
    spec.write(home)
    evaluation.model.save(home / "model")
    evaluation.model.mean_predicted_vectors(evaluation.splits.train).save(home / "vectors.npy")
    details: dict[Split, TextScore] = {"valid": evaluation.valid, "test": evaluation.test}
    for split, score in details.items():
        if score.of_tokens is not None:
            _keep_nll(home, score.of_tokens, split)
    result = replace(evaluation.result, key=key)
    write_json(home / RESULT, result.as_dict())
    evaluation.model.remove_checkpoints()
    return result


def _raise_if_interrupted(model: Model[Any]) -> None:
    if model.history_.interrupted:
        raise KeyboardInterrupt


def key_of(
    spec: LayerSpec,
    splits: Splits,
    warm_start: str | os.PathLike[str] | None = None,
    **options: Any,
) -> str:
    """Return a hash of all that a run with these options of `run` depends on.

    How far a training comes in a budget of seconds depends on kernels and threads, too.
    """
    config = config_of(options)
    depends = {"hstree": __version__, **spec.key(), "parts": content_of(splits), "model": config}
    if config.get("seconds") is not None:
        depends |= {"kernels": kernels(), "threads": n_threads()}
    if warm_start is not None:
        depends["warm start"] = content_key(Path(warm_start) / "model")
    return hash_of(depends)


def finished(folder: Path, key: str) -> RunResult | None:
    """Return the result kept in a folder if it has this key and its files are there."""
    if not all((folder / name).exists() for name in ARTEFACTS):
        return None
    return _kept_result(folder, key, RunResult)


def kept_result(folder: Path) -> RunResult | None:
    """Return the ``result.json`` of a folder, of any run; None if it is missing or damaged."""
    try:
        return decode(json.loads((folder / RESULT).read_bytes()), RunResult)
    except (OSError, ValueError, RecursionError, FileFormatError):
        return None


def _kept_result(folder: Path, key: str, kind: type[R]) -> R | None:
    """Return the ``result.json`` of a folder; None if it is missing, damaged or of another key."""
    try:
        result = decode(json.loads((folder / RESULT).read_bytes()), kind)
    except (OSError, ValueError, RecursionError, FileFormatError):
        return None
    return result if result.key == key else None


def _baseline_options(order: int) -> dict[str, Any]:
    return {"order": order, "discount": DISCOUNT}


def _baseline_key(order: int, splits: Splits) -> str:
    options = _baseline_options(order)
    return hash_of({"hstree": __version__, "parts": content_of(splits), "kneser-ney": options})


def finished_baseline(order: int, splits: Splits, folder: Path) -> BaselineResult | None:
    """Return the result of a finished run of `run_baseline`; None without one."""
    kept = _kept_result(folder, _baseline_key(order, splits), BaselineResult)
    has_nll = all(
        kept_nll(folder, len(splits.as_dict()[split]), split) is not None for split in NLL
    )
    return kept if has_nll else None


def run_baseline(order: int, splits: Splits, folder: Path) -> BaselineResult:
    """Fit and score a Kneser-Ney model, or return the result of a finished run of the same.

    The folder is made if it is missing, and gets ``valid_nll.npy``, ``test_nll.npy`` and
    ``result.json``.
    """
    if (kept := finished_baseline(order, splits, folder)) is not None:
        return kept
    # Imported here, so that a comparison without baselines does not wait for it.
    from hstree.ngrams.kneser_ney import KneserNey

    start = time.perf_counter()
    model = KneserNey(order=order, discount=DISCOUNT).fit(splits.train)
    fit_seconds = time.perf_counter() - start
    valid, test = (np.asarray(model.nll(part), np.float64) for part in (splits.valid, splits.test))
    in_vocabulary = splits.test.with_vocabulary(splits.train.vocabulary).ids(slice(None)) >= 0
    scored = {"valid": valid, "test": test, "test_without_oov": test[in_vocabulary]}
    result = BaselineResult(
        perplexity={
            name: finite(perplexity(float(nll.sum()), len(nll))) for name, nll in scored.items()
        },
        options=_baseline_options(order),
        parameters=int(sum(model.n_grams_)),
        fit_seconds=fit_seconds,
        seconds=time.perf_counter() - start,
        key=_baseline_key(order, splits),
    )
    make_folder(folder)
    (folder / RESULT).unlink(missing_ok=True)
    _keep_nll(folder, valid, "valid")
    _keep_nll(folder, test, "test")
    write_json(folder / RESULT, asdict(result))
    return result


def vectors_of(folder: str | os.PathLike[str]) -> WordVectors:
    """Return the mean predicted vectors of a finished run."""
    return WordVectors.read(Path(folder) / "vectors.npy")


def nll_of(folder: str | os.PathLike[str], splits: Splits, split: Split = "test") -> Float64:
    """Return the nll of every token of a split under a finished run over these splits.

    A file of them in the folder is read if it agrees with the run's perplexity, else written.

    Returns
    -------
    float64 array (T,)
        Negative log-likelihood in nats, in the order of the text.
    """
    home = Path(folder)
    reported = json.loads((home / RESULT).read_bytes())["perplexity"][split]
    text = splits.as_dict()[split]
    kept = kept_nll(home, len(text), split)
    if (
        kept is not None
        and reported is not None
        and math.isclose(perplexity(float(kept.sum()), len(kept)), reported, rel_tol=1e-6)
    ):
        return kept
    nll = load_model(home / "model").nll(text)
    _keep_nll(home, nll, split)
    return nll


def kept_nll(folder: Path, tokens: int, split: Split = "test") -> Float64 | None:
    """Return the kept nll of a split's tokens; None if there is none for this many of them."""
    try:
        kept = read_npy(os.fspath(folder / NLL[split]))
    except InputError:
        return None
    return kept if kept.shape == (tokens,) and kept.dtype == np.float64 else None


def _keep_nll(folder: Path, nll: Float64, split: Split) -> None:
    with replacing(folder / NLL[split]) as file:
        write_array(file, nll)


def content_of(splits: Splits) -> list[Any]:
    """Return hashes and lines of texts, for the key of what is made from them."""
    return [
        [part.sha256, list(part.lines), part.vocabulary.sha256]
        for part in splits.as_dict().values()
    ]


def built_tree(input: BuilderInput, folder: Path, method: str, options: Mapping[str, Any]) -> Tree:
    """Build a tree and keep it as ``folder/tree.json``, or read the one that is there.

    The file is read if its meta records the same version, method, options and input, and it has
    the input's words and counts. With an option that names a folder, unless it is a model's, the
    tree is always built: the content of others is not recorded. Seconds are kept in ``build.json``.
    """
    if (kept := kept_tree(input, folder, method, options)) is not None:
        return kept
    began = time.perf_counter()
    tree = build(method, input, **options)
    seconds = time.perf_counter() - began
    make_folder(folder)
    write_json(folder / BUILD, {"tree": tree.sha256, "seconds": seconds})
    tree.save(folder / "tree.json")
    return tree


def copy_tree(source: Path, folder: Path) -> None:
    """Copy a tree that `built_tree` left in a folder, and its seconds, where there is none yet."""
    if (source / "tree.json").exists() and not (folder / "tree.json").exists():
        with replacing_together(folder) as new:
            for name in (BUILD, "tree.json"):
                shutil.copyfile(source / name, new / name)


def kept_tree(
    input: BuilderInput, folder: Path, method: str, options: Mapping[str, Any]
) -> Tree | None:
    """Return the tree in a folder if `built_tree` would read it; else None."""
    tree = _readable_tree(folder)
    return tree if tree is not None and _is_built_so(tree, input, method, options) else None


def has_other_tree(
    input: BuilderInput, folder: Path, method: str, options: Mapping[str, Any]
) -> bool:
    """Return whether `built_tree` would replace the tree in a folder by another."""
    tree = _readable_tree(folder)
    return tree is not None and not _is_built_so(tree, input, method, options)


def _readable_tree(folder: Path) -> Tree | None:
    file = folder / "tree.json"
    try:
        return load(file) if file.exists() else None
    except HstreeError:
        return None


def build_seconds(folder: Path, tree_sha256: str) -> float | None:
    """Return the seconds that `built_tree` took; None if unknown or of another tree."""
    try:
        document = json.loads((folder / BUILD).read_bytes())
    except (OSError, ValueError):
        return None
    match document:
        case {"tree": str(sha256), "seconds": int(seconds) | float(seconds)}:
            return float(seconds) if sha256 == tree_sha256 else None
    return None


def _is_built_so(tree: Tree, input: BuilderInput, method: str, options: Mapping[str, Any]) -> bool:
    if not is_recorded(options):
        return False
    expected = recorded(method, input, **options)
    if any(tree.meta.get(name) != value for name, value in expected.items()):
        return False
    # The record of a corpus has its text and lines, not the vocabulary that it is read through.
    return tree.labels == _words(input) and _same_counts(tree.counts, input.counts)


def _words(input: BuilderInput) -> tuple[str, ...]:
    if isinstance(input, WordVectors):
        return input.labels
    return input.words if isinstance(input, Vocabulary) else input.vocabulary.words


def _same_counts(one: Int64 | None, other: Int64 | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder while the body runs; the folder is made if missing.

    The lock ends with the process. On systems without `flock` nothing is locked. Raises InputError
    when another process holds the lock, FileFormatError when the folder cannot be written.
    """
    make_folder(folder)
    try:
        file = (folder / LOCK).open("ab")
    except OSError as error:
        raise FileFormatError(f"cannot write in {folder}: {error.strerror}") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(
                    f"another process is at work in {folder}; "
                    "wait until it has ended, or choose another folder"
                ) from error
        yield
