"""Pure decisions: no input or output, no threads, no clocks of their own.

Rooms, and one direction of imports: `cluster` (what the manager does next) may import `schemes` (how a slice is
protected, and what that costs), which may import `replica` (what one replica does next). `application` lays a topology
out before data flows; `placement` has rules by which hosts are chosen. Besides each other they import `model` and
`errors` only.

Shells observe and execute: `runtime/` around `cluster`, `stream/` around `replica`. Start reading at
`cluster/decide.py`, then `replica/decide.py`; docs/design.md follows both through a run.
"""
