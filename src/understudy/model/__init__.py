"""Frozen values that everybody shares: topologies, layouts, messages, assignments, events, names.

Start reading at `topology.py` for what a user writes, at `messages.py` for what nodes and the manager tell each other,
and at `events.py` for what can happen in a run. Imports `errors` and nothing else of ours.
"""
