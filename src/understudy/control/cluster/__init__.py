"""What the manager does next: a snapshot in, instructions out. Start reading at `decide.py`.

- `snapshot.py` is all that a decision reads, `instructions.py` all that it can ask for.
- Policies suggest: `recovering`, `secondaries`, `reactions`, `requests`, `drain`, `throttling`, `controlling`.
- `suggestions.py` has the order of precedence and the arbiter; `deploying.py` what follows from the assignments.

May import `control.schemes`, `control.replica`, `model` and `errors`.
"""
