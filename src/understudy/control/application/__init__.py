"""From a topology to slices: which operators share a query (`fusion.py`), and whether keys are right (`grouping.py`).

May import `model` and `errors`.
"""
