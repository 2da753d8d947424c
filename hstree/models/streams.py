"""Scores of a text that is read once and never held: standard input.

A stream is scored in chunks of tokens. The batches of a chunk are those of the same text as a file
(`hstree.training.scoring`), so that the scores are equal to the last bit: chunks begin and end at
multiples of the batch size, and have the tokens around them that contexts reach.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from hstree import progress
from hstree._arrays import Bool, Float64
from hstree.data.corpus import Corpus
from hstree.data.encoding import whole_words
from hstree.data.splits import overlap
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import InputError
from hstree.kernels.backend import WORTH_TOKENS
from hstree.models.base import BaseModel, Predictor
from hstree.training.scoring import BATCH

#: Fewest tokens of a chunk that is not the last.
CHUNK = 64 * BATCH
#: Stands for the end of a line among bytes; no text contains it (`strict_text`).
_LINE_END = "\0"


class ScoredTokens(NamedTuple):
    """Consecutive tokens of a text and their scores."""

    words: list[str]
    is_end: Bool  #: (T,) whether the token ends its line
    nll: Float64  #: (T,) negative log-likelihood in nats
    oov: Bool  #: (T,) whether the token is out of vocabulary


def scored_corpus(model: Predictor, corpus: Corpus) -> Iterator[ScoredTokens]:
    """Yield the tokens of a corpus with their scores, a batch at a time."""
    start = 0
    for nll, oov in model.scored(corpus):
        stop = start + len(nll)
        is_end = np.zeros(len(nll), np.bool_)
        # The token before the start of a line ends a line
        line_starts = corpus.line_starts(start, stop)
        is_end[line_starts[(line_starts > start) & (line_starts <= stop)] - start - 1] = True
        yield ScoredTokens(corpus.words(slice(start, stop)), is_end, nll, oov)
        start = stop


class TextStream:
    """The words of a text that is read once.

    Parameters
    ----------
    name : str
        Name in messages and records.
    blocks : iterator of bytes
        Its text.

    Attributes
    ----------
    source : dict
        Name, hash and lines of the text, as a `Corpus` records them; complete at its end.
    """

    def __init__(self, name: str, blocks: Iterator[bytes]) -> None:
        self.name = name
        self._digest = hashlib.sha256()
        self._n_lines = 0
        self._pieces = whole_words(name, blocks, self._digest)

    @property
    def source(self) -> dict[str, Any]:
        """Record of the text so far."""
        about = {"kind": "corpus", "name": self.name, "sha256": self._digest.hexdigest()}
        return {**about, "lines": [0, self._n_lines]}

    def look_ahead(self, n_tokens: int = WORTH_TOKENS) -> int:
        """Read up to this many tokens ahead; return the number of tokens that were read."""
        ahead = []
        n = 0
        for piece in self._pieces:
            ahead.append(piece)
            n += len(piece[0].split()) + piece[0].count(b"\n")
            if n >= n_tokens:
                break
        # They are read again from memory
        self._pieces = chain(ahead, self._pieces)
        return n

    def tokens(self) -> Iterator[tuple[list[str], list[bool]]]:
        """Yield the words, with an ``<eos>`` at the end of each line, and whether each ends one."""
        for text, _ in self._pieces:
            # A NUL byte, which no text holds, stands for the end of a line
            data = text.replace(b"\n", b" \0 ").split()
            words = b" ".join(data).decode().split(" ") if data else []
            is_end = [word == _LINE_END for word in words]
            self._n_lines += sum(is_end)
            yield [EOS if end else word for word, end in zip(words, is_end, strict=True)], is_end

    def lines(self, max_lines: int) -> Iterator[list[list[str]]]:
        """Yield the words of the lines that have arrived, at most `max_lines` lines at a time."""
        # Lines that are complete, and the words of the line that is not
        waiting: list[list[str]] = []
        line: list[str] = []
        for words, is_end in self.tokens():
            for word, ends_line in zip(words, is_end, strict=True):
                if not ends_line:
                    line.append(word)
                    continue
                waiting.append(line)
                line = []
                if len(waiting) == max_lines:
                    yield waiting
                    waiting = []
            # Lines that have arrived do not wait for the next read
            if waiting:
                yield waiting
                waiting = []


def scored_stream(model: Predictor, text: TextStream) -> Iterator[ScoredTokens]:
    """Yield the tokens of a stream with their scores, one batch at a time.

    Raises InputError when the text is empty or not UTF-8, its first chunk has no word of the model,
    or a word is unknown and the labels hold no ``<unk>``.
    """
    vocabulary = model.vocabulary
    words: list[str] = []
    is_end: list[bool] = []
    n_done = 0  # tokens at the beginning of `words` that are scored and serve as context
    reach = 0  # tokens on either side that contexts reach, a multiple of the batch size
    is_first = True
    with progress.task(f"scoring {text.name}", unit="tokens") as task:
        for piece in chain(text.tokens(), [None]):
            # Wait for a chunk of whole batches whose contexts have arrived; None is the end
            if piece is not None:
                words += piece[0]
                is_end += piece[1]
                n_ready = max(len(words) - max(reach, BATCH), 0) // BATCH * BATCH
                if n_ready - n_done < CHUNK:
                    continue

            # The reach of contexts is known from the first corpus
            corpus = _make_corpus(words, is_end, text.name, vocabulary)
            if is_first:
                overlap(corpus)  # refuses a text without a known word
                reach = -(-_reach(model, corpus) // BATCH) * BATCH
                is_first = False
            n_ready = len(words)
            if piece is not None:
                n_ready = max(len(words) - reach, 0) // BATCH * BATCH
            if n_ready <= n_done:
                continue

            # The task of each chunk would hide the one of the stream.
            with progress.shown_by(progress.Silent()):
                scored = list(model.scored(corpus))
            nll = np.concatenate([nll for nll, _ in scored])
            oov = np.concatenate([oov for _, oov in scored])

            # Yield the new tokens, and keep those that the next ones have as context
            for start in range(n_done, n_ready, BATCH):
                part = slice(start, min(start + BATCH, n_ready))
                yield ScoredTokens(words[part], np.array(is_end[part]), nll[part], oov[part])
                task.advance(part.stop - start)
            n_done = min(reach, n_ready)
            del words[: n_ready - n_done]
            del is_end[: n_ready - n_done]


def _reach(model: Predictor, corpus: Corpus) -> int:
    """Return the number of tokens on either side of a token that its context may have."""
    models: list[BaseModel] = getattr(model, "models", [model])
    return max(single.reach(corpus) for single in models)


def _make_corpus(words: list[str], is_end: list[bool], name: str, vocabulary: Vocabulary) -> Corpus:
    """Return consecutive tokens as a corpus; where they stop within a line, the line ends."""
    if not words:
        raise InputError(f"{name} is empty; give a text with at least one word")
    stops = [i for i, end in enumerate(is_end) if end]
    starts = [0, *(stop + 1 for stop in stops)]
    if starts[-1] < len(words):
        stops.append(len(words))
    lines = [words[start:stop] for start, stop in zip(starts, stops, strict=False)]
    return Corpus.from_tokens(lines, vocabulary=vocabulary, name=name)
