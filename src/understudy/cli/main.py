"""The `understudy` command: one file per verb, registered here in the groups of `groups.py`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.console import Console

import understudy
from understudy.cli import availability, controller, query
from understudy.cli.backup import backup, restore
from understudy.cli.checkpoint import checkpoint
from understudy.cli.config import config
from understudy.cli.doctor import doctor
from understudy.cli.events import events
from understudy.cli.fidelity import fidelity
from understudy.cli.groups import VERBS, epilog
from understudy.cli.init import init
from understudy.cli.mc_trees import mc_trees
from understudy.cli.move import move
from understudy.cli.nexmark import nexmark
from understudy.cli.node import node
from understudy.cli.nodes import drain, freeze, kill
from understudy.cli.plan import plan
from understudy.cli.plan_compare import plan_compare
from understudy.cli.rebalance import rebalance
from understudy.cli.report import report
from understudy.cli.run import run
from understudy.cli.status import status
from understudy.cli.support import support_bundle
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


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"understudy {understudy.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keeps PySpark streams running when machines do not."""


_WATCH = (status, events, report, doctor)
_OPERATE = (switch, move, rebalance, checkpoint, drain, kill, freeze, backup, restore, support_bundle)
_PLAN = (plan, fidelity, mc_trees, plan_compare)
_VERBS = {
    verb.__name__.replace("_", "-"): verb
    for verb in (init, run, topology, config, node, nexmark, *_WATCH, *_OPERATE, *_PLAN)
}
_APPS = {"availability": availability.app, "controller": controller.app, "query": query.app}
for _group, _members in VERBS.items():
    for _name, _examples in _members.items():
        if _name in _APPS:
            app.add_typer(_APPS[_name], name=_name, rich_help_panel=_group, epilog=epilog(_examples))
        else:
            app.command(_name, rich_help_panel=_group, epilog=epilog(_examples))(_VERBS[_name])
