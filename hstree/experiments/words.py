"""Words of the test split that a row predicts better and worse than another, with contexts.

They come from the kept negative log-likelihood of every test token. A comparison leaves them in a
file of its own, ``words.json``, as the text need not be there when its page is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from hstree._files import read_json, write_json
from hstree._typing import Float64
from hstree.data.corpus import Corpus
from hstree.errors import FileFormatError
from hstree.experiments.results import Signed, decode

FORMAT, VERSION = "hstree words", 1
JSON = "words.json"
#: Name of the test tokens that are out of vocabulary, which are one word to the models.
OOV = "out of vocabulary"
#: Number of words at either end, of contexts of each, and of words in a context.
MOST_WORDS, CONTEXTS, BEFORE = 10, 2, 6
#: Number of places that are looked at for different contexts.
_TRIED = 50


@dataclass(frozen=True, kw_only=True)
class Context:
    """One occurrence of a word in the test split.

    Attributes
    ----------
    before : str
        The words before it.
    word : str
        As it is in the text.
    gained : float
        Nats gained at this place.
    """

    before: str
    word: str
    gained: Signed


@dataclass(frozen=True, kw_only=True)
class WordFigures:
    """What a row gains at one word.

    Attributes
    ----------
    word : str
    count : int
        Occurrences in the test split.
    gained : float
        Mean difference of the negative log-likelihood, in nats; negative where the word is
        predicted worse.
    share : float
        Share of this word in all that is gained at words that are helped, or lost at words that
        are hurt.
    contexts : list of Context
        The occurrences where most is gained, or lost.
    """

    word: str
    count: int
    gained: Signed
    share: float
    contexts: list[Context]


@dataclass(frozen=True, kw_only=True)
class WordTable:
    """The words that a row helps and hurts most, against another row.

    `gained` and `lost` are the nats of all words that are helped, and of all that are hurt.
    """

    row: str
    against: str
    gained: float
    lost: float
    helped: list[WordFigures]
    hurt: list[WordFigures]


@dataclass(frozen=True, kw_only=True)
class Words:
    """All tables, as ``words.json`` holds them."""

    tables: list[WordTable]


def words_of(
    test: Corpus, nll_of: Callable[[str], Float64], pairs: Sequence[tuple[str, str]]
) -> Words:
    """Compare rows word by word.

    Parameters
    ----------
    test : Corpus
        The test split, over the vocabulary of the models.
    nll_of : callable
        From the name of a row to the negative log-likelihood in nats of every test token, the mean
        over its random states: float64 array (T,).
    pairs : sequence of (str, str)
        Names of a row, and of the row that it is compared with.

    Returns
    -------
    Words
    """
    ids = test.ids(slice(None))
    # (T,) OOV tokens are the word 0
    group = ids.astype(np.int64) + 1
    counts = np.bincount(group, minlength=len(test.vocabulary) + 1)
    # (T,) positions by word, and where each word's begin
    order = np.argsort(group, kind="stable")
    start = np.concatenate([[0], np.cumsum(counts)])
    tables = []
    for row, against in pairs:
        with np.errstate(invalid="ignore"):
            gained = nll_of(against) - nll_of(row)
        gained = np.where(np.isfinite(gained), gained, 0.0)
        total = np.bincount(group, gained, minlength=len(counts))
        sums = float(total[total > 0].sum()), float(-total[total < 0].sum())
        ends = []
        for sign, whole in zip((1.0, -1.0), sums, strict=True):
            best = np.argsort(-sign * total, kind="stable")[:MOST_WORDS]
            figures = []
            for word in best[sign * total[best] > 0].tolist():
                places = order[start[word] : start[word + 1]]
                most = places[np.argsort(-sign * gained[places], kind="stable")]
                figures.append(
                    WordFigures(
                        word=test.vocabulary.words[word - 1] if word else OOV,
                        count=int(counts[word]),
                        gained=float(total[word] / counts[word]),
                        share=float(sign * total[word] / whole),
                        contexts=_contexts(test, most.tolist(), gained),
                    )
                )
            ends.append(figures)
        tables.append(
            WordTable(
                row=row, against=against, gained=sums[0], lost=sums[1],
                helped=ends[0], hurt=ends[1],
            )
        )  # fmt: skip
    return Words(tables=tables)


def _contexts(test: Corpus, places: Sequence[int], gained: Float64) -> list[Context]:
    """Return the contexts at the first places, each once: texts repeat themselves."""
    contexts: dict[tuple[str, str], Context] = {}
    for place in places[:_TRIED]:
        context = _context(test, place, float(gained[place]))
        contexts.setdefault((context.before, context.word), context)
    return list(contexts.values())[:CONTEXTS]


def _context(test: Corpus, position: int, gained: float) -> Context:
    *before, word = test.words(slice(max(position - BEFORE, 0), position + 1))
    return Context(before=" ".join(before), word=word, gained=gained)


def save(words: Words, folder: Path) -> None:
    """Write ``words.json``; FileFormatError when it cannot be written."""
    write_json(folder / JSON, {"format": FORMAT, "version": VERSION, **asdict(words)})


def load(folder: Path) -> Words:
    """Read ``words.json``; without tables where there is none, as earlier versions left none.

    Raises
    ------
    FileFormatError
        When it is damaged or of another version.
    """
    path = folder / JSON
    if not path.exists():
        return Words(tables=[])
    document = read_json(path, "make it with `hstree.compare`")
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise FileFormatError(f"{path} is not what `hstree.compare` of this version leaves")
    try:
        return decode(document, Words)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}; compare again") from error
