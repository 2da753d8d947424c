"""scikit-learn classifiers for many classes or labels: linear models over a tree."""

from hstree.interop.sklearn.classifier import HierarchicalSoftmaxClassifier
from hstree.interop.sklearn.label_tree import ProbabilisticLabelTreeClassifier

__all__ = ["HierarchicalSoftmaxClassifier", "ProbabilisticLabelTreeClassifier"]
