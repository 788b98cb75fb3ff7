"""What the manager must not forget: facts, assignments, receipts, events. One file for every kind of store.

`interface.py` is the contract, `sqlite.py` the embedded default. Start reading at `interface.py`.

May import `model` and `errors`.
"""
