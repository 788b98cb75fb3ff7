"""What the manager does next: a snapshot in, instructions out. Start reading at `decide.py`.

- `snapshot.py` is all that a decision reads, `instructions.py` all that it can ask for.
- Policies suggest: `recovering`, `secondaries`, `reactions`, `requests`, `moving`, `drain`, `throttling`, `planned`,
  `controlling`, `rebalancing`. `losing` gives nodes and domains up, `queueing` orders what is restored.
- `placement` balances primaries, `sites` places secondaries by a rule of `control.placement`, `weights` says what both
  cost their nodes.
- `scaling` lets the number of nodes follow the work, by a policy of `control.scaling`.
- `branching` decides about tentative output, beside the arbiter: it changes no assignment.
- `suggestions.py` has the order of precedence and the arbiter; `deploying.py` what follows from the assignments.

May import `control.placement`, `control.scaling`, `control.schemes`, `control.replica`, `model` and `errors`.
"""
