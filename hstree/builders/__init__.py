"""The tree-building strategies, by name: one strategy a file."""
