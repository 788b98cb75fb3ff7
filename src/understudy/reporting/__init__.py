"""What people are told of a run, computed from events and counters. Every number has one computation.

Events become recoveries in `recoveries.py`; the report (`report.py`), the page and the metrics read those. `slices.py`
and `health.py` say how every slice stands. Start reading at `recoveries.py`.

May import `control`, `model` and `errors`.
"""
