"""Parting words into classes: what the `classes` builder hangs its tree on, one idea a file."""
