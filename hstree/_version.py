"""The version of hstree, written into every file that it makes."""

__version__ = "0.1.0"
