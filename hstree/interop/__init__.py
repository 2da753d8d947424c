"""Bridges to the tools that people already use: gensim, PyTorch, scikit-learn.

One module a bridge, each behind an extra of its own: nothing is imported here, so that the core
needs none of them.
"""
