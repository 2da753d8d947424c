"""WordNet as trees need it: one `Taxonomy`, from the wheel, from NLTK or from a folder."""

from hstree.builders.wordnet.sources import built_in, open_taxonomy
from hstree.builders.wordnet.taxonomy import Taxonomy

__all__ = ["Taxonomy", "built_in", "open_taxonomy"]
