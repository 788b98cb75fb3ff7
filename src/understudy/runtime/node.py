"""The node process: `python -m understudy.runtime.node URL NAME`."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import signal
import sys
import threading
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
    parser.add_argument("--standby", action="store_true", help="host only secondaries until a recovery needs it")
    parser.add_argument("--child", action="store_true", help="end when standard input closes")
    parser.add_argument("--polite", action="store_true", help="start behind those who work already")
    arguments = parser.parse_args()
    configure_logging()
    if arguments.child:
        exit_with_parent()
    ready = priority.step_back() if arguments.polite else lambda: None
    token = os.environ.pop("UNDERSTUDY_TOKEN", "")
    hello = introduce(arguments.name, token, arguments.domain, standby=arguments.standby)
    try:
        serve(arguments.url, hello, arguments.master, ready)
    except UnderstudyError as error:
        # Whoever started this node shows the last lines of its log.
        logging.getLogger(__name__).error("%s", error)
        sys.exit(error.exit_code)


def introduce(name: str, token: str, domain: str, *, standby: bool = False) -> Hello:
    instance = secrets.token_hex(8)
    return Hello(node=name, token=token, pid=os.getpid(), domain=domain, instance=instance, standby=standby)


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
    heed_notice(agent)
    link.start()
    agent.run()
    link.close()


def heed_notice(agent: Agent) -> None:
    """SIGTERM gives the node notice: it ends by itself when it is empty or when its time is up. A second one ends it at
    once. Only the main thread may say what a signal does."""

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        timer = threading.Timer(agent.leave(), agent.end)
        timer.daemon = True
        timer.start()

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, leave)


if __name__ == "__main__":
    main()
