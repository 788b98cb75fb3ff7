"""The manager process: `python -m understudy.runtime.serve HOME PORT`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import uvicorn

from understudy.coordination.sqlite import SqliteStore
from understudy.runtime.application import load
from understudy.runtime.home import Home
from understudy.runtime.manager import Manager
from understudy.runtime.parent import exit_with_parent
from understudy.web.api import make_app


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
    app = make_app(manager, home.token())
    # proxy_headers off: a caller's address is the one it connects from, whatever it says of itself.
    uvicorn.run(app, host=arguments.host, port=arguments.port, log_level="warning", proxy_headers=False)


if __name__ == "__main__":
    main()
