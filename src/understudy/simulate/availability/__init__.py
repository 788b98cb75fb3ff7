"""What share of queries still runs after a day of host failures: seed 002's experiment, on Spark."""
