"""Word classes: partitions of words, and trees over their classes."""
