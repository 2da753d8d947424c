"""WordNet's taxonomy, read from the table in hstree or from another table, and its tree."""

from hstree.builders.wordnet.sources import built_in, open_taxonomy
from hstree.builders.wordnet.taxonomy import Taxonomy

__all__ = ["Taxonomy", "built_in", "open_taxonomy"]
