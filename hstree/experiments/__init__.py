"""The same model on several trees, under one budget: what each costs, and what it buys.

Every tree gets the same text, the same starting word vectors, the same batches and the same
schedule (`hstree.models.lbl_training`), so that what differs is the tree. What is compared is named in
`entries`, trained in `study`, and laid out as rows in `rows`; `hstree.experiments.results` is the file.
"""

from hstree.experiments.comparison import compare

__all__ = ["compare"]
