"""Metrics for ranked (possibly multi-label) predictions, and for taxonomies."""

from hstree.metrics.hierarchical import hierarchical_f1, hierarchical_precision, hierarchical_recall
from hstree.metrics.ranking import (
    inverse_propensity,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
)

__all__ = [
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "inverse_propensity",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_scored_precision_at_k",
]
