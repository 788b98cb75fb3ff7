"""One file per planner; `registry` finds them by name.

Each is a function from `plan.PlanRequest` to `plan.ReplicationPlan`. Start with `greedy`, the shortest. May import
everything else of `planning.replication`.
"""
