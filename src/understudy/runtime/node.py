"""The node process: `python -m understudy.runtime.node URL NAME`."""

from __future__ import annotations

import argparse
import logging
import os
from typing import Any

from understudy.model.messages import Hello, Welcome
from understudy.model.run import Frozen
from understudy.runtime import priority
from understudy.runtime.agent import Agent
from understudy.runtime.link import Link
from understudy.runtime.parent import exit_with_parent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("--master", default="local[1]")
    parser.add_argument("--domain", default="")
    parser.add_argument("--child", action="store_true", help="end when standard input closes")
    parser.add_argument("--polite", action="store_true", help="start behind those who work already")
    arguments = parser.parse_args()
    configure_logging()
    if arguments.child:
        exit_with_parent()
    if arguments.polite:
        priority.step_back()
    serve(arguments.url, arguments.name, arguments.master, arguments.domain, os.environ.pop("UNDERSTUDY_TOKEN", ""))


def configure_logging() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)


def serve(url: str, name: str, master: str, domain: str, token: str) -> None:
    """Hosts replicas until the manager says to shut down."""
    hello = Hello(node=name, token=token, pid=os.getpid(), domain=domain)

    def send(message: Frozen) -> None:
        link.send(message)

    def receive(message: Any) -> None:
        if isinstance(message, Welcome):
            link.interval_s = message.run.heartbeat_s
        agent.receive(message)

    agent = Agent(name, master, send, ready=priority.step_up)
    link = Link(url, hello, agent.beat, receive)
    link.start()
    agent.run()
    link.close()


if __name__ == "__main__":
    main()
