"""The machinery of the exact planner: a fidelity as an expression, and three ways to maximise it."""
