"""Class trees: the builder, and the clusterings of words into classes."""
