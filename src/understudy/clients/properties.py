"""Settings of a service's client in a file of its own, credentials among them, so that no address holds any."""

from __future__ import annotations

from pathlib import Path

from understudy.errors import InvalidInput


def read_properties(path: Path, what: str, names: str) -> dict[str, str]:
    """Reads `name=value` lines; empty ones and those that begin with '#' are passed over.

    Parameters
    ----------
    path
        The file; `~` is the user's own directory.
    what
        The setting whose address names the file, for errors.
    names
        Whose names the settings have, with an example, for errors.

    Raises
    ------
    InvalidInput
        If the file or a line cannot be read. The error names the line, never its content.
    """
    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror or "it cannot be read" if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(
            f"the properties file {path} cannot be read", why=why, fix=f"correct '?properties=' in {what}, or the file"
        ) from None
    found = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(
                f"line {number} of the properties file {path} cannot be read",
                why="it is not of the form name=value",
                fix=f"correct it; names are those of {names}",
            )
        found[name.strip()] = value.strip()
    return found
