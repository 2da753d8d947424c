"""Make the table of WordNet that comes with hstree, from any folder of its files or NLTK's zip.

    python scripts/make_wordnet_table.py /usr/share/wordnet
    python scripts/make_wordnet_table.py wordnet.zip -o hstree/builders/wordnet/wordnet30.tsv.xz

It keeps hypernyms, instance hypernyms, similar-to, adverbs' pertainyms, tag counts and morphy's
exception lists, and leaves out the glosses. All builds of a WordNet give the same bytes.
The format is in hstree/builders/wordnet/taxonomy.py.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import sys
import zipfile
from pathlib import Path

from hstree._files import replacing
from hstree.builders.wordnet.database import ReadFile, folder_files, read_database
from hstree.builders.wordnet.taxonomy import Taxonomy
from hstree.errors import HstreeError, InputError

TABLE = Path(__file__).parents[1] / "hstree" / "builders" / "wordnet" / "wordnet30.tsv.xz"


def main() -> None:
    """Read WordNet, check the table by making a taxonomy of it, and write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wordnet", type=Path, help="a folder with data.noun, ..., or NLTK's zip")
    parser.add_argument("-o", "--output", type=Path, default=TABLE, help=f"by default {TABLE.name}")
    given = parser.parse_args()
    try:
        is_zip = given.wordnet.suffix == ".zip"
        text = read_database(_zip_files(given.wordnet) if is_zip else folder_files(given.wordnet))
        taxonomy = Taxonomy(text)
        packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        with replacing(given.output) as file:
            file.write(packed)
    except HstreeError as error:
        sys.exit(f"error: {error}")
    print(f"WordNet {taxonomy.version}: {len(taxonomy):,} synsets, {len(packed):,} bytes")
    print(f"sha256 {hashlib.sha256(packed).hexdigest()}  {given.output.name}")


def _zip_files(path: Path) -> ReadFile:
    def read(name: str) -> bytes:
        try:
            with zipfile.ZipFile(path) as archive:
                return archive.read(f"wordnet/{name}")
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"cannot read wordnet/{name} in {path}: {error}") from error

    return read


if __name__ == "__main__":
    main()
