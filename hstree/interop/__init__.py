"""Bridges to the tools that people already use: gensim, PyTorch, scikit-learn.

Nothing is imported here, so that the core needs neither gensim nor PyTorch: each is an extra of
hstree, "gensim" and "torch". scikit-learn is one of hstree's own dependencies.
"""
