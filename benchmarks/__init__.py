"""Benchmarks: ``python -m benchmarks.NAME [--json FILE]`` prints a table."""
