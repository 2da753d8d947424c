"""N-gram language models: Kneser-Ney baselines."""
