"""Install the services, all or those named: `python -m understudy.testing.services kafka`."""

from __future__ import annotations

import sys

from understudy.errors import UnderstudyError
from understudy.testing.services.registry import SERVICES, named


def main(names: list[str]) -> int:
    failed = 0
    for name in names or list(SERVICES):
        try:
            sys.stdout.write(f"{name}: {named(name).install()}\n")
        except UnderstudyError as error:
            sys.stderr.write(f"{error}\n")
            failed = 1
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
