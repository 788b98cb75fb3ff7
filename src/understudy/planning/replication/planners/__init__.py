"""One file per planner; `registry` finds them by name."""
