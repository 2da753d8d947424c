"""Trees over words sorted by their endings, so that "walking" and "talking" are neighbours."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from hstree import Tree, Vocabulary
from hstree.builders import checked_options
from hstree.builders.balanced import complete_tree


@checked_options
def endings(vocabulary: Vocabulary, *, arity: Annotated[int, Meta(ge=2)] = 2) -> Tree:
    """Build a complete tree over the words in the order of their endings.

    Parameters
    ----------
    vocabulary : Vocabulary
    arity : int
        Children of each node.
    """
    words = vocabulary.words
    # (V,) word ids in the order of the leaves, from left to right
    leaves = np.array(sorted(range(len(words)), key=lambda word: words[word][::-1]))
    return complete_tree(vocabulary, leaves, arity)
