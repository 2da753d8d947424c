"""Scores of a stream, such as standard input: the text is read once and not kept.

A stream is scored in chunks of tokens. Chunks begin and end at multiples of the batch size, and
include the tokens around them that contexts need. The batches are therefore the same as for the
same text in a file (`hstree.training.scoring`), and scores are equal to the last bit.
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

#: Minimum number of tokens in a chunk, except for the last chunk.
CHUNK = 64 * BATCH
#: Byte that represents the end of a line; no text contains it (`strict_text`).
_LINE_END = "\0"


class ScoredTokens(NamedTuple):
    """Consecutive tokens of a text, and their scores."""

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
        # The token before the start of a line ends the previous line
        line_starts = corpus.line_starts(start, stop)
        is_end[line_starts[(line_starts > start) & (line_starts <= stop)] - start - 1] = True
        yield ScoredTokens(corpus.words(slice(start, stop)), is_end, nll, oov)
        start = stop


class TextStream:
    """Words of a text that is read once.

    Parameters
    ----------
    name : str
        Name in messages and records.
    blocks : iterator of bytes
        Blocks of the text.

    Attributes
    ----------
    source : dict
        Name, hash and lines of the text, as in the record of a `Corpus`; complete at the end.
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
        """Read about `n_tokens` tokens in advance; return the number of tokens read."""
        ahead = []
        n = 0
        for piece in self._pieces:
            ahead.append(piece)
            n += len(piece[0].split()) + piece[0].count(b"\n")
            if n >= n_tokens:
                break
        # `tokens` reads these pieces again from memory
        self._pieces = chain(ahead, self._pieces)
        return n

    def tokens(self) -> Iterator[tuple[list[str], list[bool]]]:
        """Yield the words, including ``<eos>`` at line ends, and whether each word ends a line."""
        for text, _ in self._pieces:
            # A NUL byte, which no text contains, represents the end of a line
            data = text.replace(b"\n", b" \0 ").split()
            words = b" ".join(data).decode().split(" ") if data else []
            is_end = [word == _LINE_END for word in words]
            self._n_lines += sum(is_end)
            yield [EOS if end else word for word, end in zip(words, is_end, strict=True)], is_end

    def lines(self, max_lines: int) -> Iterator[list[list[str]]]:
        """Yield the words of the lines that have arrived, at most `max_lines` lines at a time."""
        # Complete lines, and the words of the incomplete line
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
            # Do not delay lines that have arrived until the next read
            if waiting:
                yield waiting
                waiting = []


def scored_stream(model: Predictor, text: TextStream) -> Iterator[ScoredTokens]:
    """Yield the tokens of a stream with their scores, one batch at a time.

    Raises InputError when the text is empty or not UTF-8, when its first chunk has no word of the
    model, or when a word is unknown and the labels lack ``<unk>``.
    """
    vocabulary = model.vocabulary
    words: list[str] = []
    is_end: list[bool] = []
    n_done = 0  # number of tokens at the beginning of `words` that are scored, kept as context
    reach = 0  # number of context tokens on either side, a multiple of the batch size
    is_first = True
    with progress.task(f"scoring {text.name}", unit="tokens") as task:
        for piece in chain(text.tokens(), [None]):
            # Wait for a chunk of complete batches and their contexts; None means the end
            if piece is not None:
                words += piece[0]
                is_end += piece[1]
                n_ready = max(len(words) - max(reach, BATCH), 0) // BATCH * BATCH
                if n_ready - n_done < CHUNK:
                    continue

            # The first corpus determines the reach of contexts
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

            # Hide the progress of chunks, which would replace that of the stream
            with progress.shown_by(progress.Silent()):
                scored = list(model.scored(corpus))
            nll = np.concatenate([nll for nll, _ in scored])
            oov = np.concatenate([oov for _, oov in scored])

            # Yield the new tokens, and keep the tokens that the next chunk needs as context
            for start in range(n_done, n_ready, BATCH):
                part = slice(start, min(start + BATCH, n_ready))
                yield ScoredTokens(words[part], np.array(is_end[part]), nll[part], oov[part])
                task.advance(part.stop - start)
            n_done = min(reach, n_ready)
            del words[: n_ready - n_done]
            del is_end[: n_ready - n_done]


def _reach(model: Predictor, corpus: Corpus) -> int:
    """Return the maximum number of context tokens on either side of a token."""
    models: list[BaseModel] = getattr(model, "models", [model])
    return max(single.reach(corpus) for single in models)


def _make_corpus(words: list[str], is_end: list[bool], name: str, vocabulary: Vocabulary) -> Corpus:
    """Return consecutive tokens as a corpus; an incomplete last line is ended."""
    if not words:
        raise InputError(f"{name} is empty; give a text with at least one word")
    stops = [i for i, end in enumerate(is_end) if end]
    starts = [0, *(stop + 1 for stop in stops)]
    if starts[-1] < len(words):
        stops.append(len(words))
    lines = [words[start:stop] for start, stop in zip(starts, stops, strict=False)]
    return Corpus.from_tokens(lines, vocabulary=vocabulary, name=name)
