"""Text and vectors as arrays."""
