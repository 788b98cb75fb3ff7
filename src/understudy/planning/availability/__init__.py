"""Availability from spare resources: which operators to replicate, how often, and on which hosts.

The model and the heuristics are those of Grüneberger, Heinze and Felber 2013 (docs/references.md); docs/availability.md
explains them with figures. In the order of a plan:

- `query`, `sharing`, `workload`: queries, the graph of shared operators, rates and loads as arrays;
- `importance`, `selection`, `placement`: how much a replica helps, which ones fit, where they go;
- `survival`: the probability that each query still runs;
- `plan`: these steps in one call. Start reading here;
- `optimise`: searches for better plans, and a bound on all of them;
- `files`: the planning file.

Pure: may import `understudy.errors` and `understudy.planning.status`, never what acts.
"""
