"""WordNet's taxonomy, from the table in hstree, from NLTK or from another table, and its tree."""

from hstree.builders.wordnet.sources import open_taxonomy
from hstree.builders.wordnet.taxonomy import Taxonomy, built_in

__all__ = ["Taxonomy", "built_in", "open_taxonomy"]
