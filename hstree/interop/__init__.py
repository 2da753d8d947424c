"""Bridges to gensim, PyTorch and scikit-learn.

Nothing is imported here: gensim and PyTorch are the extras "gensim" and "torch" of hstree.
"""
