"""Experiments: candidates, the runner that trains them, and comparisons of them.

`candidate` says what can stand in a comparison, `run` trains it, `compare` makes the table,
`results` has the figures and their files, `speed` measures, `significance` gives intervals.
"""
