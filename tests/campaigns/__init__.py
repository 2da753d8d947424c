"""Campaigns: mutated files over all readers, and killed writers, counted.

``python -m tests.campaigns`` runs both in short, ``--full`` in full. What goes wrong is printed
with the number that makes the same file again. The short forms are tests, too.
"""
