"""N-gram language models, the baselines that a trained tree is compared with."""
