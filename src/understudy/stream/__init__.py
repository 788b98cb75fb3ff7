"""Spark: the shell around `control/replica`. It observes, lets the rules decide, and executes.

- A replica: `replica.py` (one `turn` is one decision and its execution; start reading there), `query.py` for operators,
  `source.py` and `sink.py` for both ends. What an operator's replica is made of: `query_slot.py`, `inputs.py`,
  `outbox.py`, `shipper.py`, `position.py`, `reading.py`; what a decision sees: `observation.py`; what carries it out:
  `execution.py`.
- The world: `edge.py` says what replicas need of it, `spark_edge.py` is the real one, with `gated_query.py`,
  `bag_reader.py` and `frames.py`. The simulated cluster (`tests/simulated/`) has one in memory.
- A node's session: `session.py`, `settings.py`, `profile.py`, `overlay.py`, `archive.py`, `launch.py`, `java.py`
  (docs/sessions.md). Before data flows: `check.py` and `plans.py` ask Spark about the operators.

May import `control`, `log`, `checkpoints`, `coordination`, `sources`, `sinks`, `model`, `errors` and `settings`; with
`simulate` the only package that imports PySpark. Every class that several threads use says which of them may change
what; docs/design.md has the table.
"""
