"""Output layers: negative log-likelihood, gradients, log_prob, top-k and sampling over a tree."""
