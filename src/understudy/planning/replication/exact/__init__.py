"""The parts of the `exact` planner: an expression, its curves, and searches for what is entangled.

Start with `search`, which calls the others. `expressions` and `build` turn the metric into a factored expression;
`curves` and `cases` solve what falls apart, `bounds` (one level up) bounds the rest; `model`, `milp`, `boxes` and
`leaf` solve what stays entangled as mixed-integer programmes; `tangles` finds it, `incumbent` is a plan to start from.
May import `planning.replication`, and HiGHS in `milp` alone.
"""
