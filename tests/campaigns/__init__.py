"""Campaigns: mutated files over all readers, killed writers and interrupted commands.

`python -m pytest --campaigns short tests/campaigns` takes minutes. With ``--campaigns full`` it
takes hours: a million mutated files, 200 kills, and every command interrupted on 100,000 words.
"""
