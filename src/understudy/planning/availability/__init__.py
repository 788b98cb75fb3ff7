"""Availability from spare resources: which operators to copy, how often, and where to put the copies."""
