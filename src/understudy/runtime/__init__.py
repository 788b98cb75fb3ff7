"""Processes: the manager's loop, nodes, the launcher; the shell around `control/cluster`.

- The manager: `manager.py` (start reading there), with its memory (`memory.py`), its journal (`journal.py`), its
  observer (`observer.py`) and what carries decisions out (`enactor.py`). `run_view.py` is what people read.
- `loop.py` owns the clock, `node_port.py` the connections of nodes, `serve.py` puts them together with `web/`.
- A node: `node.py`, `agent.py` (obeys messages, hosts replicas), `spark_host.py` (its session and its JVM), `link.py`.
- The launcher: `launcher.py`, `processes.py`, `manager_restarts.py`, `faults.py`, `home.py`, `prepare.py`.

May import everything but `cli`, `planning`, `simulate`, `testing` and `clients`; only `serve.py` imports `web`.
"""
