"""Where a WordNet comes from: the one that comes with hstree, NLTK's, or a folder of its files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hstree._files import read_regular
from hstree.builders.wordnet.table import built_in_text
from hstree.builders.wordnet.taxonomy import Taxonomy
from hstree.builders.wordnet.wndb import ReadFile, read_database
from hstree.errors import InputError

BUILT_IN = "builtin"
NLTK = "nltk"


def open_taxonomy(source: str | Path = BUILT_IN) -> Taxonomy:
    """Read a WordNet.

    Parameters
    ----------
    source : str or Path
        ``"builtin"``, WordNet 3.0 as it comes with hstree; ``"nltk"``, NLTK's corpus ``wordnet``,
        found where NLTK finds its data; or a folder with ``data.noun``, ``index.noun`` and so on,
        such as Debian's ``/usr/share/wordnet``. A `Path` is always a folder.

    Returns
    -------
    Taxonomy
        The same for the same WordNet, whichever way it came.

    Raises
    ------
    InputError
        When it is not there, or not a WordNet.
    """
    if source == BUILT_IN:
        return built_in()
    read = _nltk_file if source == NLTK else folder_files(Path(source))
    return Taxonomy(read_database(read))


@cache
def built_in() -> Taxonomy:
    """Return the WordNet 3.0 that comes with hstree; read once, about a second."""
    return Taxonomy(built_in_text())


def folder_files(folder: Path) -> ReadFile:
    """Return a reader of one folder's files.

    Raises
    ------
    InputError
        When there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(
            f"no folder {folder} to read WordNet from; give 'builtin', 'nltk' or a folder that "
            "holds data.noun, index.noun, ..."
        )

    def read(name: str) -> bytes:
        try:
            return read_regular(folder / name)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"cannot read {folder / name}: {reason}; a WordNet folder has data, index and "
                "exception files for each part of speech, and cntlist.rev"
            ) from error

    return read


def _nltk_file(name: str) -> bytes:
    # NLTK takes over a second to import. Its own reader is not used: it gives hypernyms in an
    # order that changes from run to run, and wants files that Debian's WordNet lacks.
    import nltk.data

    try:
        with nltk.data.find(f"corpora/wordnet/{name}").open() as file:
            content: bytes = file.read()
    except (LookupError, OSError) as error:
        raise InputError(
            f"NLTK's wordnet is not installed, or lacks {name}: get it with `python -m "
            "nltk.downloader wordnet`, set NLTK_DATA to the folder that holds it, or use 'builtin'"
        ) from error
    return content
