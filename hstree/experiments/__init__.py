"""Experiments: train the same model with several output layers and compare the results.

`candidate` defines candidates, and `setting` the conditions that they share. `store` keeps finished
work in a folder. `job` trains and scores one model. `schedule` runs the jobs, with `halving` and
`parallel`. `speed` measures trained models. `summary` computes the structs of `results`, with the
intervals of `statistics` and the choice of `recommendation`, and `writer` writes them while jobs
run. `continuation` adds candidates to a comparison in a folder. Users call `compare` and
`bootstrap`.
"""
