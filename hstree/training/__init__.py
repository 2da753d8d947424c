"""Training: the loop over epochs, optimisers, and scoring of texts."""
