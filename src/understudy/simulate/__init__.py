"""Random problems and simulations: they show how good the planners and the controller are, without failing machines.

- `topologies`, `replication_study`: random planning problems, and all planners over them (`understudy plan-compare`);
- `controller_run`: a trace replayed through the real controller, with kills. `controller_trace` is its input,
  `controller_machine` the simulated machine, `controller_result` what it returns, `controller_figures` its pictures
  (`understudy controller simulate`);
- `availability`: days of host failures as one Spark job (`understudy availability simulate`).

Deterministic under a seed. May import `planning`, `control`, `model` and `sources.shapes`; only `availability.job` and
`availability.session` import PySpark. Nothing that runs a topology imports this package.

Start reading with `controller_run`.
"""
