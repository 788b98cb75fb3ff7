"""Adaptive high availability for PySpark Structured Streaming."""
