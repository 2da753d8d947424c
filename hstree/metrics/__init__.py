"""Figures of predictions: of ranked labels, several of which may be right."""

from hstree.metrics.ranking import (
    inverse_propensity,
    ndcg_at_k,
    precision_at_k,
    propensity_scored_precision_at_k,
)

__all__ = [
    "inverse_propensity",
    "ndcg_at_k",
    "precision_at_k",
    "propensity_scored_precision_at_k",
]
