"""Experiments: the same model trained with several output layers, and what follows from it.

`candidate` says what is compared, and `setting` under which conditions. `store` keeps finished work
in a folder, `job` trains and scores one model, and `schedule` decides which jobs run when, with
`halving` and `parallel`. `statistics` has intervals and the recommendation. `summary` makes the
structs of `results`, which `writer` keeps current. `compare` and `bootstrap` are called by users.
"""
