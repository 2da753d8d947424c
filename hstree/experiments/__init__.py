"""The same model on several trees, under one budget: what each costs, and what it buys.

Every tree gets the same text, the same starting word vectors, the same batches and the same
schedule, so that what differs is the tree. `entries` names what is compared, `comparison` trains
it, `rows` lays it out as rows, and `results` is the file.
"""

from hstree.experiments.comparison import compare

__all__ = ["compare"]
