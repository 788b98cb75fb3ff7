"""Resolve the services' lock files again: `python -m understudy.testing.services.lock`, part of `make lock`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.stream import java
from understudy.testing.services import ivy, jars, kafka, zookeeper


def resolve(bundle: jars.Bundle) -> str:
    """The new text of the lock file: all that the bundle's roots need, as Maven Central has it now."""
    with tempfile.TemporaryDirectory(prefix="lock-") as folder:
        found = ivy.resolve(java.find(), bundle.roots, Path(folder))
        return jars.write_lock(bundle, {name: jars.digest(path) for name, path in found.items()})


def main() -> int:
    try:
        for bundle in (kafka.BUNDLE, zookeeper.BUNDLE):
            bundle.lock.write_text(resolve(bundle))
            sys.stdout.write(f"{bundle.lock.name}: {len(jars.read_lock(bundle.lock.read_text()))} jars\n")
    except UnderstudyError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
