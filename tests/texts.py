"""Small corpora for tests."""

import numpy as np

from hstree import progress
from hstree.data.corpus import Corpus
from hstree.models import new_model


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def contents(folder):
    """Return the content of every file under a folder, by its path from there."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}


def corpus_of(tmp_path, lines, name="text.txt", unk=None, **options):
    """Return the corpus of a file of lines, by default with all words."""
    path = write_lines(tmp_path / name, lines)
    if options.get("vocabulary") is None:
        options.setdefault("min_count", 1)
    return Corpus.read(path, cache=tmp_path / "cache", unk=unk, **options)


def markov_lines(n_tokens, seed, n_words=6, per_line=20):
    """Draw lines from a first-order chain; return them and its conditional entropy in nats.

    The chain's last state is the line end, which always comes after `per_line` words.
    """
    chain = np.random.default_rng(5).dirichlet(np.full(n_words, 0.3), size=n_words)
    rng = np.random.default_rng(seed)
    lines = []
    entropy = 0.0
    n_drawn = 0
    cumulative = chain.cumsum(axis=1)
    state = 0
    for _ in range(n_tokens // per_line):
        words = []
        for u in rng.random(per_line):
            state_after = min(int(np.searchsorted(cumulative[state], u)), n_words - 1)
            entropy -= np.log(chain[state, state_after])
            state = state_after
            words.append(f"w{state}")
            n_drawn += 1
        lines.append(" ".join(words))
    return lines, entropy / n_drawn


def fitted(output, splits, **options):
    """Return a model trained on splits, as ids of the labels of its output layer."""
    model = new_model(output, **options)
    return model.fit(model.reencode(splits.train), model.reencode(splits.valid))


class Messages(progress.Silent):
    """A display that keeps the lines that stay."""

    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)
