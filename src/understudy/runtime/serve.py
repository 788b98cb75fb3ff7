"""The manager process: `python -m understudy.runtime.serve HOME PORT`. Puts the manager and the web together."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from understudy.coordination.sqlite import SqliteStore
from understudy.runtime.application import load
from understudy.runtime.faults import LocalFaults
from understudy.runtime.home import Home
from understudy.runtime.loop import tick_forever
from understudy.runtime.manager import Manager
from understudy.runtime.node_port import add_node_port
from understudy.runtime.parent import exit_with_parent
from understudy.web.access import Access
from understudy.web.api import Served, make_app
from understudy.web.ports import NodeFaults
from understudy.web.pulse import Pulse


def compose(manager: Manager, token: str, faults: NodeFaults | None = None) -> FastAPI:
    """One port for everything: the API and the page, the connections of nodes, and the loop of the manager."""
    pulse = Pulse(CollectorRegistry())
    served = Served(
        reader=manager.view,
        commands=manager,
        faults=faults or LocalFaults(manager.view.nodes_directory),
        pulse=pulse,
        loops=(lambda: tick_forever(manager, pulse),),
    )
    app = make_app(served, token)
    add_node_port(app, manager, Access(token).knows)
    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    exit_with_parent()
    home = Home(arguments.home)
    spec = home.stored()
    kept = spec.config.retention
    store = SqliteStore(home.database, receipts_kept=kept.receipts, events_kept=kept.events)
    manager = Manager(home.path, load(Path(spec.app), spec.settings), store)
    app = compose(manager, home.token())
    # proxy_headers off: a caller's address is the one it connects from, whatever it says of itself.
    uvicorn.run(app, host=arguments.host, port=arguments.port, log_level="warning", proxy_headers=False)


if __name__ == "__main__":
    main()
