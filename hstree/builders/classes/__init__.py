"""Class trees: their builder, and clusterings of words into classes."""
