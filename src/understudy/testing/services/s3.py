"""An S3 store: moto's, behind a server of ours that keeps its promises (`s3_server`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any, ClassVar

from understudy.errors import InvalidInput
from understudy.testing.services import clients
from understudy.testing.services.base import SingleService
from understudy.testing.services.ports import free_ports

REGION = "us-east-1"


class S3(SingleService):
    """An S3 store; clients take `address`, an http:// URL, for the endpoint. Any key and secret are accepted.

    Examples
    --------
    >>> with S3() as s3:  # doctest: +SKIP
    ...     s3.create_bucket("bags")
    ...     store = S3Store(**s3.options("bags"))
    """

    name: ClassVar[str] = "s3"

    @classmethod
    def check(cls) -> None:
        clients.require(cls.name, ("moto", "flask", "flask_cors", "obstore"))

    def prepare(self) -> None:
        (self.port,) = free_ports(1)
        self.address = f"http://127.0.0.1:{self.port}"

    def command(self) -> Sequence[str]:
        module = "understudy.testing.services.s3_server"
        return [sys.executable, "-m", module, str(self.port), str(self.directory / "journal")]

    def answers(self) -> bool:
        line = HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            line.request("GET", "/")
            return line.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            line.close()

    def create_bucket(self, name: str) -> None:
        """Creates a bucket.

        Parameters
        ----------
        name : str
            3 to 63 lower-case letters, digits and hyphens.

        Raises
        ------
        InvalidInput
            If the store refuses it.
        """
        line = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            line.request("PUT", f"/{name}")
            status = line.getresponse().status
        finally:
            line.close()
        if status != 200:
            raise InvalidInput(
                f"Bucket {name!r} was not created.",
                why=f"The store answered {status}.",
                fix="Use 3 to 63 lower-case letters, digits and hyphens, and each name once.",
            )

    def options(self, bucket: str) -> Mapping[str, Any]:
        """Returns what obstore needs to reach a bucket: ``S3Store(**s3.options("bags"))``.

        Parameters
        ----------
        bucket : str
            Name of the bucket.

        Returns
        -------
        mapping
            Keyword arguments of ``obstore.store.S3Store``.
        """
        return {
            "bucket": bucket,
            "endpoint": self.address,
            "region": REGION,
            "access_key_id": "understudy",
            "secret_access_key": "understudy",
            "virtual_hosted_style_request": False,
            "client_options": {"allow_http": True},
        }
