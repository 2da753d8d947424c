"""scikit-learn classifier for many classes: a linear model whose softmax is a tree."""

from hstree.interop.sklearn.classifier import HierarchicalSoftmaxClassifier

__all__ = ["HierarchicalSoftmaxClassifier"]
