"""Context models: from the words around a position to its hidden vector."""
