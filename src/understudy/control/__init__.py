"""Pure decisions: no input or output, no threads, no clocks of their own.

Three rooms, one direction of imports: `cluster` (what the manager does next) may import `schemes` (how a slice is
protected, and what that costs), which may import `replica` (what one replica does next). `application` lays a topology
out. All of them import `model` and `errors` only. Start reading at `cluster/decide.py`.
"""
