"""A third opinion: what the applications of `tests/apps` and `examples` must deliver, worked out in plain Python.

Nothing here imports the project, directly or through an application; `tests/unit/test_oracles.py` holds that. The rows
of the sources are made again (`rows`), every kind of operator is a short function over lists of rows (`operators`,
`windows`, `joins`), one module per application says how they are wired (`kinds`, `rarer`, `summed`), and `delivered`
compares the result with the files that a run left behind, epoch by epoch. The modules named after a folder of
`examples` are written from the definition of its problem; `lines` compares them with the JSON lines of a run.
"""
