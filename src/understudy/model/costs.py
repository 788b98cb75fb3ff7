"""What resources are worth to a user, so that schemes can be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

from understudy.errors import InvalidInput

RESOURCES = ("cpu", "memory", "network", "nodes")


@dataclass(frozen=True)
class Costs:
    """Weights of the resources a secondary uses, by which the controller ranks schemes.

    What a secondary uses of a resource is measured relative to its primary. Only the ratio of the weights matters:
    twice the weight counts twice as much.

    Parameters
    ----------
    cpu : float, optional
        Weight of CPU time. Default: 1.
    memory : float, optional
        Weight of memory. Default: 1.
    network : float, optional
        Weight of bytes received, pulled and sent. Default: 1.
    nodes : float, optional
        Weight of the machines that must be there. Default: 1.

    Attributes
    ----------
    EVERYTHING : Costs
        All four resources count alike; the default of a topology.
    PAY_PER_MACHINE : Costs
        Only nodes count, as on a cloud bill: a machine costs the same whether it works or not.

    Raises
    ------
    InvalidInput
        If a weight is negative or infinite, or all are 0.

    Examples
    --------
    >>> import understudy as us
    >>> us.Costs(cpu=2, network=0.5).heaviest
    'cpu'
    >>> us.Costs.PAY_PER_MACHINE
    Costs(cpu=0.0, memory=0.0, network=0.0, nodes=1.0)
    >>> app = us.Topology("cloud", costs=us.Costs.PAY_PER_MACHINE)
    """

    cpu: float = 1.0
    memory: float = 1.0
    network: float = 1.0
    nodes: float = 1.0

    EVERYTHING: ClassVar[Costs]
    PAY_PER_MACHINE: ClassVar[Costs]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < math.inf:
                raise InvalidInput(
                    f"Costs({field.name}={value})", why="a weight says how much a resource counts", fix="give 0 or more"
                )
        if not any(self.weights):
            raise InvalidInput(
                "Costs without any weight", why="then no scheme is cheaper than another", fix="weigh one resource"
            )

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """The weights in the order cpu, memory, network, nodes."""
        return (self.cpu, self.memory, self.network, self.nodes)

    @property
    def heaviest(self) -> str:
        """The resource that counts most; the first of equals."""
        return RESOURCES[self.weights.index(max(self.weights))]


EVERYTHING = Costs()
PAY_PER_MACHINE = Costs(cpu=0.0, memory=0.0, network=0.0, nodes=1.0)
Costs.EVERYTHING = EVERYTHING
Costs.PAY_PER_MACHINE = PAY_PER_MACHINE
PRESETS = {"everything": EVERYTHING, "pay-per-machine": PAY_PER_MACHINE}
