"""The Nexmark benchmark: a made-up auction house and 23 queries about it, as understudy topologies.

- `events`: the generator of people, auctions and bids (`draws`, `pools` and `columns` are what it is made of);
- `views`: the three kinds of events as DataFrames of their own;
- `stateless`, `reports`, `windowed`, `joined`, `closing`: the queries, by the kind of state they need;
- `catalogue`: all of them by name. Start reading here;
- `app`: the application file, one topology for the queries that the setting `query` names;
- `plain`: the same query in plain Structured Streaming, in a process of its own, to compare with.

`understudy nexmark` runs them (docs/nexmark.md). Imports `sources`, `stream`, `model` and PySpark, the public
`understudy` in the application file, and of `runtime` how a child ends; only `cli` imports this package.
"""
