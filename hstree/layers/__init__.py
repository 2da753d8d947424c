"""Output layers, one per file: loss, gradients, log-probabilities, top-k labels and samples."""
