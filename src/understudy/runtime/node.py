"""The node process: `python -m understudy.runtime.node URL NAME`."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import sys
from collections.abc import Callable
from typing import Any

from understudy.errors import UnderstudyError
from understudy.model.config import DEFAULTS
from understudy.model.messages import Hello, Welcome
from understudy.model.run import Frozen
from understudy.runtime import priority
from understudy.runtime.agent import Agent
from understudy.runtime.link import Link
from understudy.runtime.parent import exit_with_parent
from understudy.runtime.spark_host import SparkHost


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("--master", default=DEFAULTS.cluster.master)
    parser.add_argument("--domain", default="")
    parser.add_argument("--child", action="store_true", help="end when standard input closes")
    parser.add_argument("--polite", action="store_true", help="start behind those who work already")
    arguments = parser.parse_args()
    configure_logging()
    if arguments.child:
        exit_with_parent()
    ready = priority.step_back() if arguments.polite else lambda: None
    hello = introduce(arguments.name, os.environ.pop("UNDERSTUDY_TOKEN", ""), arguments.domain)
    try:
        serve(arguments.url, hello, arguments.master, ready)
    except UnderstudyError as error:
        # Whoever started this node shows the last lines of its log.
        logging.getLogger(__name__).error("%s", error)
        sys.exit(error.exit_code)


def introduce(name: str, token: str, domain: str) -> Hello:
    return Hello(node=name, token=token, pid=os.getpid(), domain=domain, instance=secrets.token_hex(8))


def configure_logging() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)


def serve(url: str, hello: Hello, master: str, ready: Callable[[], None] = lambda: None) -> None:
    """Hosts replicas until the manager says to shut down."""

    def send(message: Frozen) -> None:
        link.send(message)

    def receive(message: Any) -> None:
        if isinstance(message, Welcome):
            link.interval_s = message.run.heartbeat_s
        agent.receive(message)

    host = SparkHost(hello.node, master, ready)
    agent = Agent(hello.node, host, send)
    host.say_goodbye = agent.say_goodbye
    link = Link(url, hello, agent.beat, receive, fit=agent.is_fit)
    link.start()
    agent.run()
    link.close()


if __name__ == "__main__":
    main()
