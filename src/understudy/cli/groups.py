"""The verbs in groups, as `understudy --help` shows them, each with examples for its own help.

Every example is parsed by a test, so that it names options and arguments that exist.
"""

from __future__ import annotations

from enum import StrEnum


class Group(StrEnum):
    """What somebody wants to do; the order is that of the help."""

    RUN = "Run"
    WATCH = "Watch"
    OPERATE = "Operate"
    PLAN = "Plan"
    RESEARCH = "Research"


VERBS: dict[Group, dict[str, tuple[str, ...]]] = {
    Group.RUN: {
        "init": ("understudy init shop", "understudy init shop --name orders"),
        "run": (
            "understudy run app.py",
            "understudy run app.py --check",
            "understudy run app.py --nodes 5 --scheme passive_standby_hot --replace",
            "understudy run app.py --epochs 60 --fault kill:node-2@epoch20 --report r.json",
            "understudy run app.py --home HOME --resume",
        ),
        "topology": ("understudy topology app.py", "understudy topology app.py --check --format mermaid"),
        "config": ("understudy config app.py", "understudy config --defaults > understudy.toml"),
        "node": ("understudy node --join http://127.0.0.1:8787 --token-file HOME/token --domain rack-2",),
        "query": ('understudy query explain "SELECT word FROM words" --app app.py', "understudy query explain app.py"),
    },
    Group.WATCH: {
        "status": ("understudy status --watch", "understudy status --home HOME --json"),
        "events": ("understudy events --follow", "understudy events --after 120 --json"),
        "report": ("understudy report r.json", "understudy report r.json --html r.html --events HOME/events.jsonl"),
        "doctor": ("understudy doctor", "understudy doctor --nodes 5 --port 9000"),
    },
    Group.OPERATE: {
        "switch": ("understudy switch 'counts[1]' active_standby",),
        "move": ("understudy move 'counts[1]' node-3",),
        "rebalance": ("understudy rebalance --dry-run", "understudy rebalance"),
        "checkpoint": ("understudy checkpoint", "understudy checkpoint 'counts[0]' 'counts[1]'"),
        "drain": ("understudy drain node-2", "understudy drain node-2 --within 30s", "understudy drain node-2 --undo"),
        "kill": ("understudy kill node-2 --yes", "understudy kill node-2 --jvm"),
        "freeze": ("understudy freeze node-2 --for 5s", "understudy freeze node-2 --jvm --yes"),
        "backup": ("understudy backup HOME backup.tar.gz",),
        "restore": ("understudy restore backup.tar.gz restored",),
        "support-bundle": ("understudy support-bundle trouble.tar.gz --home HOME --report r.json",),
    },
    Group.PLAN: {
        "plan": (
            "understudy plan topology.yaml --budget 4",
            "understudy plan app.py --budget 4 --json > plan.json",
            "understudy plan app.py --budget 4 --apply",
        ),
        "fidelity": ("understudy fidelity topology.yaml --failed 'O2[1]'",),
        "mc-trees": ("understudy mc-trees topology.yaml --list 5",),
        "availability": (
            "understudy availability plan stocks.yaml",
            "understudy availability optimise stocks.yaml --target 0.999",
        ),
    },
    Group.RESEARCH: {
        "nexmark": ("understudy nexmark --queries q3,q5 --fault kill:node-2@epoch12 --against-spark",),
        "plan-compare": ("understudy plan-compare --topologies 100 --plot curves.svg",),
        "controller": ("understudy controller simulate --objective 1,2,5 --slices 200",),
    },
}
"""For every group its verbs, in the order of the help, and the examples of each."""


def epilog(examples: tuple[str, ...]) -> str:
    """What stands below the options in a verb's help: one example a line."""
    return "\n\n".join(["Examples:" if len(examples) > 1 else "Example:", *(f"$ {example}" for example in examples)])
