"""Models whose hidden vectors a PyTorch network computes. They are imported without torch."""
