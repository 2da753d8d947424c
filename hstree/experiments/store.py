"""The folder of a comparison, with finished work that is found by keys.

Only this module knows folders, file names, keys and hashes. Learned vectors, a tree, and a trained
model with its scores each have their own folder. A record in the folder is written last. It
contains the key, which is a hash of everything that the work depends on, and the hashes of the
files. If the key or a hash differs, the work counts as absent.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np

from hstree._arrays import Float64
from hstree._files import (
    json_hash,
    locked,
    open_regular,
    read_json,
    read_regular,
    remove,
    replacing,
)
from hstree._parallel import n_threads
from hstree._text import one_line
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.provenance import collect_sources
from hstree.data.splits import Splits
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.data.word_files import LABELS
from hstree.errors import FileFormatError, HstreeError, explained
from hstree.experiments import results
from hstree.experiments.candidate import Candidate, Job
from hstree.experiments.results import JobResult
from hstree.experiments.setting import Setting
from hstree.kernels import backend_name
from hstree.layers.registry import LayerSpec
from hstree.models import BaseModel, load_model
from hstree.tree import Tree

HeldOut = Literal["valid", "test"]
ArtifactKind = Literal["runs", "trees", "vectors"]
Artifact = TypeVar("Artifact", Tree, WordVectors)
T = TypeVar("T", bound=msgspec.Struct)

RESULT = "result.json"
BUILD = "build.json"
MODEL = "model"
CHECKPOINTS = "checkpoints"
TREE = "tree.json"
VECTORS = "vectors.npy"
ROUNDS = "rounds.json"
SPEEDS = "speeds.json"
#: Subfolder with the scores of all held-out tokens, for a job that scored a sample.
ALL_TOKENS = "all-tokens"
#: Files with the negative log-likelihood of every token in a split.
NLL: dict[HeldOut, str] = {"valid": "valid_nll.npy", "test": "test_nll.npy"}

#: Maximum length of a folder name, without the hash.
_MAX_FOLDER_LENGTH = 80


class NotFinishedError(Exception):
    """Unfinished work was requested from a read-only store."""


class BuildRecord(results.Record, frozen=True):
    """The content of ``build.json``: key, hash and seconds of a tree or of vectors."""

    key: str
    sha256: str
    vectors: results.Amount | None
    seconds: results.Amount | None


class Store:
    """The folder of a comparison.

    Damaged work counts as absent, with a warning if the store is writable. The locks of two folders
    are never held at the same time, which prevents deadlocks.

    Attributes
    ----------
    home : Path
    is_read_only : bool
        Whether a request for unfinished work raises NotFinishedError.
    """

    def __init__(self, home: str | os.PathLike[str], *, is_read_only: bool = False) -> None:
        self.home = Path(home)
        self.is_read_only = is_read_only

    def require_writable(self) -> None:
        """Raise NotFinishedError if the store is read-only."""
        if self.is_read_only:
            raise NotFinishedError

    # Folders and locks

    def folder(self, job: Job, kind: ArtifactKind = "runs") -> Path:
        """Return the folder of the model, tree or vectors of a job; layers share a tree folder."""
        candidate = job.candidate.tree_candidate if kind == "trees" else job.candidate
        folder = self.home / kind / folder_name(candidate)
        return folder / f"seed-{job.seed}" if job.candidate.is_trained else folder

    def model_folder(self, job: Job, kind: ArtifactKind = "runs") -> Path:
        """Return the folder of the trained model of a job, or of the source of its vectors."""
        return self.folder(job, kind) / MODEL

    def relative(self, path: Path) -> str:
        """Return a path relative to the folder of the comparison, as recorded in results."""
        return path.relative_to(self.home).as_posix()

    def tree_file(self, job: Job) -> Path:
        """Return the tree file of a job."""
        return self.folder(job, "trees") / TREE

    def lock_folder(self, folder: Path) -> AbstractContextManager[None]:
        """Lock the folder of a job; wait while another process holds the lock."""
        return nullcontext() if self.is_read_only else locked(folder, wait=True)

    # Trees and vectors

    def has_tree(self, job: Job) -> bool:
        """Return whether a tree was built for a job, with any key."""
        return (self.tree_file(job).parent / BUILD).exists()

    def load_built(
        self, file: Path, key: str, read: Callable[[Path], Artifact]
    ) -> tuple[Artifact, BuildRecord] | None:
        """Return a valid tree, or valid vectors, with the record; None if there is none."""
        if not os.path.lexists(file.parent / BUILD):
            return None
        try:
            record = read_record(file.parent / BUILD, BuildRecord)
            if record.key != key:
                return None
            artifact = read(file)
            if artifact.sha256 != record.sha256:
                raise FileFormatError(f"{file} is damaged: its hash differs from that in {BUILD}")
        except (HstreeError, OSError) as error:
            self._warn_of_damage(error, "it is built again")
            return None
        return artifact, record

    def save_built(self, file: Path, artifact: Tree | WordVectors, record: BuildRecord) -> None:
        """Write a tree or vectors, then the record."""
        _make_room(file.parent, BUILD, file.name, f"{file.stem}{LABELS}")
        artifact.save(file)
        write_record(file.parent / BUILD, record)

    # Models and their results

    def load_result(
        self, folder: Path, key: str, model_folder: Path | None = None
    ) -> JobResult | None:
        """Return the valid result of a finished job in `folder`, or None.

        The model in `model_folder` must be readable. An n-gram model has no folder.
        """
        if not os.path.lexists(folder / RESULT):
            return None
        try:
            result = read_record(folder / RESULT, JobResult)
            if result.interrupted or result.key != key:
                return None
            if result.failed is not None:
                return result
            # Find damaged files now, not when another candidate needs them
            if model_folder is not None:
                load_model(model_folder)
            for name in NLL.values():
                digest = hashlib.sha256(read_regular(folder / name)).hexdigest()
                if digest != result.files.get(name):
                    raise FileFormatError(f"{folder / name} is damaged: its hash differs")
        except (HstreeError, OSError) as error:
            self._warn_of_damage(error, "the job runs again")
            return None
        return result

    def save_result(
        self, folder: Path, result: JobResult, nlls: Mapping[HeldOut, Float64]
    ) -> JobResult:
        """Write the scores of every token, then the result; return the result with the hashes.

        The checkpoints of a finished training are removed.
        """
        # The record is removed first and written last: without it, the job is unfinished
        _make_room(folder, RESULT, *NLL.values())
        hashes = {}
        for split, nll in nlls.items():
            path = folder / NLL[split]
            with replacing(path) as file:
                np.save(file, nll, allow_pickle=False)
            hashes[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        result = msgspec.structs.replace(result, files=hashes)
        write_record(folder / RESULT, result)
        if not result.interrupted:
            with suppress(OSError):
                remove(folder / CHECKPOINTS)
        return result

    def save_model(self, folder: Path, model: BaseModel) -> None:
        """Write a trained model; remove an earlier model and its scores."""
        # Remove the result first: without it, the other files count as absent
        _make_room(folder, RESULT, ALL_TOKENS, MODEL, *NLL.values())
        model.save(folder / MODEL)

    def load_nll(self, job: Job, result: JobResult, split: HeldOut) -> Float64:
        """Return the negative log-likelihood (T,) of every token that a finished job has scored."""
        folder = self.folder(job)
        if result.key != read_record(folder / RESULT, JobResult).key:
            folder /= ALL_TOKENS
        nll: Float64 = np.load(folder / NLL[split], allow_pickle=False)
        return nll

    def _warn_of_damage(self, error: Exception, consequence: str) -> None:
        """Warn of damaged work with the message of an error, and the consequence as its end."""
        if not self.is_read_only:
            warnings.warn(f"{problem(error)}; {consequence}", stacklevel=4)

    # Files of the whole comparison

    def save_words(self, vocabulary: Vocabulary) -> None:
        """Write the words with their training counts, from which trees can be rebuilt."""
        vocabulary.save(self.home / results.WORDS)

    def load(self, name: str, kind: type[T]) -> T | None:
        """Return the record `ROUNDS` or `SPEEDS`; None if it is missing or damaged."""
        path = self.home / name
        if not os.path.lexists(path):
            return None
        try:
            return read_record(path, kind)
        except FileFormatError as error:
            warnings.warn(f"{error}; it is computed again", stacklevel=3)
            return None

    def save(self, name: str, record: msgspec.Struct) -> None:
        """Write the record `ROUNDS` or `SPEEDS`."""
        write_record(self.home / name, record)


def problem(error: Exception) -> str:
    """Return the message of an error without its remedy, for work that is repeated anyway."""
    return one_line(error).rsplit("; ", 1)[0].rstrip(";")


def folder_name(candidate: Candidate) -> str:
    """Return the folder name of a candidate, with a hash if plain letters may not be unique."""
    if candidate.tree is not None:
        stem = re.sub(r"[^a-z0-9.]+", "-", Path(candidate.file).name.partition(".")[0].lower())
        return f"tree-{stem}-{_short_hash(f'{candidate.tree.sha256} {candidate.layer}')}"
    joined = candidate.name.replace(" + ", " ")
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", joined).strip("-.").lower()
    if len(plain) <= _MAX_FOLDER_LENGTH and re.fullmatch(r"[a-z0-9 ._=-]+", joined):
        return plain
    return f"{plain[:_MAX_FOLDER_LENGTH]}-{_short_hash(candidate.name)}"


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _make_room(folder: Path, *names: str) -> None:
    """Create a folder if necessary, and remove the named files in it, in the given order.

    Raises FileFormatError on failure.
    """
    with explained(f"write in {folder}", FileFormatError, "remove it, or choose another folder"):
        if not folder.is_dir():
            remove(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            remove(folder / name)


# Keys


def job_key(setting: Setting, spec: LayerSpec, seed: int, seconds: float | None) -> str:
    """Return the key of a job; `seconds` is its time limit, or None."""
    dependencies = {
        "hstree": __version__,
        **spec.config(),
        "text": setting.text_record,
        "read": collect_sources(spec.provenance),
        "model": setting.options,
        "seed": seed,
        "epochs": setting.stop.max_epochs,
        "kernels": backend_name(),
    }
    if seconds is not None:
        # The number of threads affects the progress in this time
        dependencies |= {"seconds": seconds, "threads": n_threads()}
    return json_hash(dependencies)


def ngram_key(setting: Setting, train: Corpus, held_out: Splits, options: dict[str, Any]) -> str:
    """Return the key of an n-gram model that is fitted to `train` and scored on `held_out`."""
    return json_hash(
        {
            "hstree": __version__,
            "text": setting.text_record,
            "held out": _held_out_lines(held_out),
            "read": collect_sources(train.record),
            "kneser-ney": options,
        }
    )


def all_tokens_key(result: JobResult, splits: Splits) -> str:
    """Return the key of the scores of all held-out tokens under the model of a result."""
    return json_hash({"job": result.key, "held out": _held_out_lines(splits)})


def tree_key(
    setting: Setting, candidate: Candidate, seed: int, inputs: Mapping[str, Path | str]
) -> str:
    """Return the key of the tree that a candidate builds from a text and input files.

    Raises InputError if an input file cannot be read.
    """
    return json_hash(
        {
            "hstree": __version__,
            "candidate": candidate.name,
            "read": collect_sources(candidate.provenance),
            "seed": seed,
            "text": setting.text_record,
            "files": {name: _input_hashes(Path(file)) for name, file in inputs.items()},
        }
    )


def rounds_key(setting: Setting) -> str:
    """Return the key of the rounds of halving."""
    return json_hash(
        {
            "rule": str(setting.stop),
            "text": setting.text_record,
            "model": setting.options,
            "seeds": list(setting.seeds),
        }
    )


def _held_out_lines(splits: Splits) -> list[list[int]]:
    return [list(part.lines) for part in (splits.valid, splits.test)]


def _input_hashes(file: Path) -> list[str]:
    """Return the hashes of an input file and its labels, or of all files in a folder."""
    files = [file]
    with explained(f"read {file}"):
        if file.is_dir():
            files = sorted(path for path in file.iterdir() if path.is_file())
        labels = file.parent / f"{file.stem}{LABELS}"
        if labels.exists():
            files.append(labels)
        hashes = []
        for path in files:
            with open_regular(path) as content:
                hashes.append(hashlib.file_digest(content, "sha256").hexdigest())
    return hashes


# Records with a checksum of all values


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Write a record with its checksum; replace an existing file or folder.

    Raises FileFormatError on failure.
    """
    # The checksum is that of the values as they are read: JSON has no infinity or NaN
    document = msgspec.json.decode(msgspec.json.encode(record))
    if not path.is_file():
        with explained(f"write {path}", FileFormatError):
            remove(path)
    results.write_struct(path, record, checksum=json_hash(document))


def read_record(path: Path, kind: type[T]) -> T:
    """Read a record. Raises FileFormatError if it is missing or damaged, or a value was changed."""
    document = read_json(path, dict[str, Any])
    checksum = document.pop("checksum", None)
    try:
        if checksum != json_hash(document):
            raise FileFormatError(f"{path} is damaged: its checksum differs from its content")
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise FileFormatError(f"{path} is damaged: {one_line(error)}") from error
