"""What to replicate and where: planners as tools, not part of a run.

- `replication`: which tasks of one topology get an active replica, under a budget of replicas, when everything can fail
  at once (`understudy plan`, `fidelity`, `mc-trees`);
- `availability`: which operators of many queries get replicas from spare capacity, and on which hosts
  (`understudy availability`);
- `status`: what a planner's result is worth.

Pure: given a problem and a seed, every planner returns the same plan. May import `understudy.errors` and
`understudy.model`; never PySpark nor a package that acts (tests/unit/test_layers.py holds this). Solvers are optional:
only `exact` and `optimise.bound` need HiGHS, and they import it when called.

Start reading with `replication.metrics`, then `replication.planners.greedy`; or with `availability.plan`.
"""
