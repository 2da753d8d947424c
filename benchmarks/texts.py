"""Texts of the benchmarks, each in a training, a validation and a test split."""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

import hstree
from benchmarks.classifiers import posts
from hstree.data.splits import Splits

#: Numbers of tokens after which the splits end. The test split of Brown's corpus is the rest.
BROWN = (900_000, 1_000_000)
POSTS = (650_000, 737_000, 824_000)
NOVELS = (400_000, 450_000, 500_000)
#: Maximum number of tokens of a post.
POST = 1_000
#: Number of first lines of the novels, which have more tokens than the splits.
NOVEL_LINES = 50_000


def add_ptb(command: argparse.ArgumentParser) -> None:
    """Add ``--ptb DIR``, by default the folder of the tests."""
    data = os.environ.get("HSTREE_TEST_DATA")
    command.add_argument("--ptb", type=Path, default=Path(data, "ptb") if data else None)


def add_texts(command: argparse.ArgumentParser, default: str | None = "ptb") -> None:
    """Add ``--corpus NAME``, and the folder of the Penn Treebank."""
    command.add_argument("--corpus", choices=TEXTS, default=default)
    add_ptb(command)


def ptb_splits(folder: Path | None) -> Splits:
    """Read the Penn Treebank's three splits."""
    if folder is None:
        sys.exit("set HSTREE_TEST_DATA, or give --ptb: ptb.train.txt, .valid.txt and .test.txt")
    return Splits(
        *(
            hstree.Corpus.read(folder / f"ptb.{part}.txt", min_count=1)
            for part in ("train", "valid", "test")
        )
    )


def brown_splits(*_: Path | None) -> Splits:
    """Read Brown's corpus through NLTK, and split it."""
    text = hstree.Corpus.read("nltk:brown")
    return cut(text, *BROWN, len(text))


def posts_splits(*_: Path | None) -> Splits:
    """Split posts of twenty newsgroups in random order, each split to the end of a line.

    Words and single other characters except spaces are tokens, in lower case, with "N" for a
    number. Longer posts are left out: they are lists of questions, or files as text.
    """
    texts = posts("train")[0]
    lines: list[list[str]] = []
    for index in np.random.default_rng(0).permutation(len(texts)):
        plain = re.sub(r"\d+", "N", texts[index].lower())
        post = [re.findall(r"[^\W_]+|[^\w\s]", line) for line in plain.splitlines()]
        if sum(map(len, post)) <= POST:
            lines += filter(None, post)
    return cut(hstree.Corpus.from_tokens(lines), *POSTS)


def novels_splits(*_: Path | None) -> Splits:
    """Split the beginning of ``$HSTREE_TEST_DATA/novels/novels90.txt.gz``, in its order."""
    file = Path(os.environ.get("HSTREE_TEST_DATA", ""), "novels", "novels90.txt.gz")
    if not file.is_file():
        sys.exit(f"{file} is missing: set HSTREE_TEST_DATA to the folder that has it")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return cut(hstree.Corpus.from_lines(islice(lines, NOVEL_LINES)), *NOVELS)


def cut(text: hstree.Corpus, *ends: int) -> Splits:
    """Cut a text into three splits, each up to the end of the line after so many tokens in all.

    The 10,000 most frequent words of the training split are the vocabulary.
    """
    lines = np.searchsorted(text.line_start, ends).tolist()
    parts = [text.select_lines(*between) for between in pairwise([0, *lines])]
    words = parts[0].select_vocabulary(min_count=1, max_size=10_000, unk=True)
    return Splits(*(part.with_vocabulary(words) for part in parts))


#: Functions that read a text, given the folder of the Penn Treebank.
TEXTS = {
    "ptb": ptb_splits,
    "brown": brown_splits,
    "posts": posts_splits,
    "novels": novels_splits,
}
