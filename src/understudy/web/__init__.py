"""The manager's port for people and programs: API, live page, metrics, health. It reads, and it never decides.

`ports.py` says what it needs of a run; whoever serves the port implements that. Start reading at `api.py`.

May import `reporting`, `control`, `model` and `errors`, and nothing from `runtime`.
"""
