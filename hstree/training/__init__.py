"""How models are trained: batches of contexts, optimisers, the loop over epochs."""
