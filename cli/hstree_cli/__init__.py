"""The `hstree` program: one command per file."""
