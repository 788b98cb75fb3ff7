"""The share of queries that still run after a day of host failures: Grüneberger et al. 2013, §3.4, on Spark.

Start with `run`: one simulated day, pure numpy. `generator` makes its queries; `job` runs many days as one Spark job,
in the session of `session`; `summary` and `figure` turn the results into points and pictures. `instances` makes random
problems for tests and benchmarks.

May import `planning.availability`; only `job` and `session` import PySpark.
"""
