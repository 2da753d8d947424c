"""The `hstree` program: one command a file."""
