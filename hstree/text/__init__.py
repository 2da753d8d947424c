"""Text on its way to numbers: where it comes from, its prose, its encoding as ids of types."""
