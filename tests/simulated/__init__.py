"""A cluster in memory that runs the real thing: manager, agents, replicas and their decisions.

What is simulated is the world around them: time and processes (`scheduler.py`), the log (`log.py`), shipped checkpoints
(`checkpoints.py`), queries (`query.py`) and the network between nodes and manager (`node.py`). Rows are tokens
(`tokens.py`): the token of an epoch depends on everything it was made from, so a lost, doubled or reordered epoch, or a
state restored at the wrong place, changes every token after it. One seed replays everything.

Start reading at `cluster.Cluster`; scenarios that read top to bottom are in `tests/scenarios/`.
"""
