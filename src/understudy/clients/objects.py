"""A folder of an object store: the few requests we make, and errors that a user can act on.

obstore speaks to S3, Google Cloud Storage and Azure, and repeats a request that failed, with jitter. What it says of an
error may hold a signed address or a piece of a response, so only a cleaned first line of it goes on.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from understudy.errors import Away, Unavailable

Version = Mapping[str, str]
"""Which state of an object somebody has read; some stores tell it by an ETag, others by a number."""

PIECE = 8 << 20
"""Larger objects are sent and fetched in pieces of this size, so that a request that is repeated is never large."""
_LISTED = 1000
_NOISE = re.compile(r"\?[^\s'\"]*|<.*|,? after \d+ retries.*?retry_timeout: \S+")


@dataclass(frozen=True)
class Folder:
    """`store` is one of obstore's, `prefix` the folder inside, `shown` its address in errors.

    May be used by several threads at once. Every method raises `Away` if the store does not respond.
    """

    store: Any = field(repr=False)
    prefix: str
    shown: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def below(self, name: str) -> Folder:
        return Folder(self.store, f"{self.prefix}/{name}".strip("/"), f"{self.shown}/{name}", self.secrets)

    # -- reading

    def get(self, name: str) -> tuple[bytes, Version] | None:
        """The content of an object and its version; None if there is none."""
        return self._get(name, None)

    def get_if_changed(self, name: str, known: Version) -> tuple[bytes, Version] | None:
        """The content and version of an object, None if it is the one that is known.

        Raises
        ------
        FileNotFoundError
            If it is gone.
        """
        from obstore.exceptions import NotModifiedError

        try:
            found = self._get(name, known["e_tag"])
        except NotModifiedError:
            return None
        if found is None:
            raise FileNotFoundError(name)
        return found

    def _get(self, name: str, unless: str | None) -> tuple[bytes, Version] | None:
        import obstore
        from obstore.exceptions import NotModifiedError

        with self._explained(besides=(FileNotFoundError, NotModifiedError)):
            try:
                found = obstore.get(self.store, self._path(name), options={"if_none_match": unless} if unless else None)
                return bytes(found.bytes()), _version(found.meta)
            except FileNotFoundError:
                return None

    def pieces(self, name: str, size: int) -> Iterator[bytes]:
        """The content of an object of a known size, piece by piece. An object of another size ends early.

        Raises
        ------
        FileNotFoundError
            If there is none.
        """
        import obstore

        for start in range(0, size, PIECE):
            wanted = min(PIECE, size - start)
            try:
                with self._explained(besides=(FileNotFoundError,)):
                    yield bytes(obstore.get_range(self.store, self._path(name), start=start, length=wanted))
            except Away:
                # Stores refuse a range beyond the end of an object.
                if self.size(name) == size:
                    raise
                return

    def size(self, name: str) -> int:
        """The size of an object; raises FileNotFoundError if there is none."""
        import obstore

        with self._explained(besides=(FileNotFoundError,)):
            return int(obstore.head(self.store, self._path(name))["size"])

    def names(self, below: str) -> Iterator[str]:
        """The names of all objects in a folder. Listing takes long and costs: never where data waits for it."""
        import obstore

        with self._explained():
            for found in obstore.list(self.store, self._path(below), chunk_size=_LISTED):
                yield from (str(one["path"]).removeprefix(self.prefix).strip("/") for one in found)

    # -- writing

    def put(self, name: str, content: bytes | IO[bytes], size: int) -> None:
        """Writes an object whether it is there or not; nobody sees half of it."""
        import obstore

        with self._explained():
            obstore.put(
                self.store,
                self._path(name),
                content,
                chunk_size=PIECE,
                use_multipart=size > PIECE,
                max_concurrency=4,
            )

    def create(self, name: str, content: bytes) -> Version | None:
        """Writes an object that is not there yet; None, and nothing changes, if it is. The first writer wins."""
        from obstore.exceptions import AlreadyExistsError

        try:
            return self._put_if(name, content, "create")
        except AlreadyExistsError:
            return None

    def replace(self, name: str, content: bytes, known: Version) -> Version | None:
        """Writes an object if it is still the known version; None, and nothing changes, if it is not."""
        from obstore.exceptions import PreconditionError

        try:
            return self._put_if(name, content, dict(known))
        except PreconditionError:
            return None

    def _put_if(self, name: str, content: bytes, mode: Any) -> Version:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._explained(besides=(AlreadyExistsError, PreconditionError)):
            return _version(obstore.put(self.store, self._path(name), content, mode=mode, use_multipart=False))

    def delete(self, names: Sequence[str]) -> None:
        """Removes objects; one that is not there is no error."""
        import obstore

        for start in range(0, len(names), _LISTED):
            with self._explained(besides=(FileNotFoundError,)):
                paths = [self._path(name) for name in names[start : start + _LISTED]]
                try:
                    obstore.delete(self.store, paths)
                except FileNotFoundError:
                    _delete_each(self.store, paths)

    # -- errors

    def probe(self) -> None:
        """Raises unless the store can be written and keeps two promises: put-if-absent, and replace-if-unchanged.

        Raises
        ------
        Away
            If it does not respond, or refuses us.
        Unavailable
            If it ignores the condition of a write: then of two writers both would win.
        """
        name = f"understudy-probe-{secrets.token_hex(8)}"
        first = self.create(name, b"1")
        again = self.create(name, b"2")
        second = None if first is None else self.replace(name, b"3", first)
        stale = None if first is None else self.replace(name, b"4", first)
        self.delete([name])
        if first is None or again is not None or second is None or stale is not None:
            raise Unavailable(
                f"{self.shown} cannot be used",
                why="the store ignores If-None-Match or If-Match, so two writers could both win",
                fix="use a store with conditional writes (S3, Google Cloud Storage, Azure, MinIO), or another address",
            )

    @contextmanager
    def _explained(self, besides: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except besides:
            raise
        except FileNotFoundError:
            raise Away(
                f"{self.shown} is not there",
                why="the store knows no such bucket or container",
                fix="create it, or correct the address; then continue with --resume",
            ) from None
        except (UnauthenticatedError, PermissionDeniedError) as error:
            raise Away(
                f"{self.shown} refuses us: {self._cleaned(error)}",
                why="the credentials are missing or wrong, or have not the rights",
                fix="check the credentials and their rights (docs/checkpoints.md); then continue with --resume",
            ) from None
        except (BaseError, OSError) as error:
            raise Away(
                f"{self.shown} does not respond: {self._cleaned(error)}",
                why="the request failed, also when it was repeated",
                fix="check the address, the service, and that credentials are given (docs/checkpoints.md); "
                "then continue with --resume",
            ) from None

    def _cleaned(self, error: Exception) -> str:
        said = _NOISE.sub("", str(error).partition("\n")[0])
        for secret in self.secrets:
            said = said.replace(secret, "…")
        return said.strip(" :-")[:200]

    def _path(self, name: str) -> str:
        return f"{self.prefix}/{name}".strip("/")


def _version(found: Mapping[str, Any]) -> Version:
    return {name: found[name] for name in ("e_tag", "version") if found[name] is not None}


def _delete_each(store: Any, paths: Iterable[str]) -> None:
    import obstore

    for path in paths:
        try:
            obstore.delete(store, path)
        except FileNotFoundError:
            continue
