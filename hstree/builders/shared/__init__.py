"""Helpers shared by the tree methods."""
