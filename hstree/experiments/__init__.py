"""Experiments: train on a tree, bootstrap trees from text, compare many.

`entries` names what is compared, `comparison` trains it, `rows` computes the figures of each row,
`runs` keeps what is finished, and `results` has the figures and their files.
"""

from hstree.experiments.comparison import compare

__all__ = ["compare"]
