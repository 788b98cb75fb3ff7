"""The query language: text that becomes an operator of a topology, for people who do not write Python.

A text is read into a syntax tree (`parser.py`, `tree.py` and `grammar.lark`; `syntax.py` has its nodes, `printer.py`
prints it back). `derive.py` turns the tree and what is known about streams (`catalog.py`) into a plan (`plans.py`):
what is computed, and the key, the slices, the event time and the output mode, each with its reason (`explain.py`).
All of this is pure. Only `frames.py` and `sequences.py` import PySpark: they do what the plan says with streaming
DataFrames. `matching.py` finds sequences in plain Python.

Start reading at `query.py`, which is `us.query`. May import `model` and `errors`.
"""
