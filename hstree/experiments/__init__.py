"""Experiments: the same model trained with several output layers, and what follows from it.

`candidate` has what is compared, and `setting` the conditions that candidates share. `store` keeps
finished work in a folder, `job` trains and scores one model, and `schedule` decides which jobs run
when, with `halving` and `parallel`. `speed` measures trained models. `summary` makes the structs of
`results`, with the intervals of `statistics` and the choice of `recommendation`, and `writer` keeps
them current. `continuation` joins candidates to those in a folder. `compare` and `bootstrap` are
called by users.
"""
