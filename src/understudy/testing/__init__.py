"""For tests of your own topologies: runs with faults, and real servers.

- `cluster.run`: runs an application on nodes of this machine, injects faults, returns the report. Start reading here;
- `services`: real Kafka, ZooKeeper, S3 and PostgreSQL for tests (docs/services.md), and their pytest fixtures.

Public, like `understudy` itself. May import every package of the project; no other package imports this one.
"""
