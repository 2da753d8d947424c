"""Campaigns: mutated files over all readers, killed writers and interrupted commands, counted.

``python -m tests.campaigns`` runs the first two in short, ``--full`` in full. What goes wrong is
printed with the number that makes the same file again. The short forms are tests, too.
"""
