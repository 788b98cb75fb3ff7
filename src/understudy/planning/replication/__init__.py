"""Which tasks get an active replica when everything can fail at once.

The problem, the metric and three planners (`dynamic`, `greedy`, `structure-aware`) are those of Su and Zhou 2016
(docs/references.md); `exact` is ours. docs/planning.md explains them with figures.

- `problem`, `checks`, `files`, `from_topology`: the planning problem, and where it comes from;
- `flows`, `metrics`: the problem as arrays, and the fidelity of a set of live tasks. Start reading with `metrics`;
- `incremental`, `sensitivity`, `closure`, `mc_trees`, `structure`, `bounds`: what the planners compute with;
- `plan`, `registry`, `planners`, `exact`: what a planner gets and returns, and the planners by name;
- `validator`: checks a plan with code of its own.

Pure: may import `understudy.errors`, `understudy.model` and `understudy.planning.status`, never what acts.
"""
