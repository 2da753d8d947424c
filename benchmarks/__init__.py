"""Benchmarks: ``python -m benchmarks.NAME [--json FILE]`` prints a table; no part of the tests."""
