"""The grid of the DEBS 2015 Grand Challenge: 150 km × 150 km, numbered from the north-west corner.

The challenge counts routes between cells of 500 m and profits of cells of 250 m. Both grids share their corner, so a
large cell holds exactly four small ones, and it is enough to find the small cell of a point.
"""

from __future__ import annotations

SMALL = 600  # cells of 250 m in each direction
LARGE = 300  # cells of 500 m
LAT_STEP, LON_STEP = 0.004491556 / 2, 0.005986 / 2  # 250 m to the south and to the east, in the challenge's degrees
NORTH, WEST = 41.474937 + LAT_STEP, -74.913585 - LON_STEP  # the large cell 1.1 is centred on 41.474937, -74.913585


def cell_code(x: int, y: int, cells: int) -> int:
    """A cell as one number, to keep rows and states small: x counts to the east and y to the south, both from 1."""
    return x * (cells + 1) + y


def cell_name(code: int, cells: int) -> str:
    """The challenge's name of a cell, such as 150.162.

    >>> cell_name(cell_code(150, 162, LARGE), LARGE)
    '150.162'
    """
    x, y = divmod(code, cells + 1)
    return f"{x}.{y}"


def route_name(code: int) -> str:
    """A route from one large cell to another; its code is the start's code times (LARGE + 1)² plus the end's.

    >>> route_name(cell_code(1, 2, LARGE) * (LARGE + 1) ** 2 + cell_code(300, 4, LARGE))
    '1.2-300.4'
    """
    start, end = divmod(code, (LARGE + 1) ** 2)
    return f"{cell_name(start, LARGE)}-{cell_name(end, LARGE)}"
