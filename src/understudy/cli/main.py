"""The `understudy` command: one file per verb, registered here."""

from __future__ import annotations

import sys
from typing import Any

import typer
from rich.console import Console

from understudy.cli import availability, controller
from understudy.cli.config import config
from understudy.cli.doctor import doctor
from understudy.cli.events import events
from understudy.cli.fidelity import fidelity
from understudy.cli.mc_trees import mc_trees
from understudy.cli.node import node
from understudy.cli.nodes import drain, freeze, kill
from understudy.cli.plan import plan
from understudy.cli.plan_compare import plan_compare
from understudy.cli.report import report
from understudy.cli.run import run
from understudy.cli.status import status
from understudy.cli.switch import switch
from understudy.cli.topology import topology
from understudy.errors import UnderstudyError

# Typer brings its own copy of Click, or not: its exported error leads to the base of all wrong uses.
_USAGE: type[Exception] = typer.BadParameter.__mro__[1]


class _Verbs(typer.core.TyperGroup):
    """Prints our own errors in short lines and exits with their code; everything else keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UnderstudyError as error:
            _complain(str(error))
            sys.exit(error.exit_code)
        except _USAGE as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                # No verb at all: the help is the answer.
                raise
            verb = getattr(getattr(error, "ctx", None), "command_path", "understudy")
            _complain(f"{getattr(error, 'format_message', error.__str__)().rstrip('.')}: see '{verb} --help'")
            sys.exit(2)


def _complain(text: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print("[bold red]error[/]", end=" ")
    console.print(text, markup=False)


app = typer.Typer(
    name="understudy",
    help="Keeps PySpark streams running when machines do not.",
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


@app.callback()
def _root() -> None:
    """Keeps PySpark streams running when machines do not."""


watching = (status, events, switch, kill, freeze, drain, doctor, report)
for verb in (run, config, node, topology, *watching, plan, fidelity, mc_trees, plan_compare):
    app.command(verb.__name__.replace("_", "-"))(verb)
app.add_typer(availability.app, name="availability")
app.add_typer(controller.app, name="controller")
