"""What one replica does next: a view in, one action out.

`decide.py` holds the rules of an operator's replica, `ends.py` those of sources and sinks. `switching.py` says which
capability is next, `bags.py` what becomes of a bag, `shipping.py` in which order a checkpoint is shipped,
`retention.py` which checkpoints stay, and `comeback.py` how long a slice was away.

Nothing here waits, reads a disk or knows Spark: `stream/` observes and executes. The simulated cluster runs the same
functions. This package imports `model` only.

Start reading at `decide.decide`.
"""
