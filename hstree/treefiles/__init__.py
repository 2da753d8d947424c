"""The two layouts of a tree file, JSON and .npz, and what they share."""
