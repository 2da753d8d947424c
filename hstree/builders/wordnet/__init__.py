"""WordNet's taxonomy, from the copy in hstree, from NLTK or from a folder, and its tree."""

from hstree.builders.wordnet.database import open_taxonomy
from hstree.builders.wordnet.taxonomy import Taxonomy, built_in

__all__ = ["Taxonomy", "built_in", "open_taxonomy"]
