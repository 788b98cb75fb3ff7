"""Errors a user can act on: what happened, why, what to do."""

from __future__ import annotations


class UnderstudyError(Exception):
    """Base of every error we raise on purpose; the command line prints its three parts, no traceback."""

    exit_code = 2

    def __init__(self, what: str, *, why: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n  why: {self.why}\n  fix: {self.fix}"


class InvalidInput(UnderstudyError):
    """A file, an option or an argument that cannot mean anything."""


class Unavailable(UnderstudyError):
    """A program, a service or a resource that is not there."""


class Away(Unavailable):
    """A service that does not respond now. Whoever can wait or go on without it tries again."""


class NoManager(Unavailable):
    """Nobody answers where a running manager was expected. Said in one line: there is only one thing to do."""

    exit_code = 3

    def __str__(self) -> str:
        return f"{self.what} ({self.why}): {self.fix}"
