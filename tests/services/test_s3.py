"""The object store has one winner for every key, and keeps what it acknowledged."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from understudy.testing.services import S3

ROUNDS = 25
WRITERS = 4


def _store(s3: S3, bucket: str) -> Any:
    from obstore.store import S3Store

    return S3Store(**s3.options(bucket))


def test_put_if_absent_has_one_winner(s3: S3) -> None:
    import obstore
    from obstore.exceptions import AlreadyExistsError

    s3.create_bucket("race")
    store = _store(s3, "race")

    def attempt(key: str, writer: int) -> bool:
        try:
            obstore.put(store, key, b"%d" % writer, mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(ROUNDS):
            key = f"epoch-{number}"
            won = list(pool.map(lambda writer, key=key: attempt(key, writer), range(WRITERS)))
            assert won.count(True) == 1
            assert bytes(obstore.get(store, key).bytes()) == b"%d" % won.index(True)


def test_objects_survive_a_kill(s3: S3) -> None:
    import obstore
    from obstore.exceptions import AlreadyExistsError

    s3.create_bucket("kept")
    store = _store(s3, "kept")
    large = bytes(range(256)) * 30_000
    obstore.put(store, "small", b"first", mode="create")
    # Larger than one part, so it is uploaded in several.
    obstore.put(store, "large", large)
    obstore.put(store, "gone", b"x")
    obstore.delete(store, "gone")
    address = s3.address
    s3.kill()
    assert s3.restart() == address
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "small", b"second", mode="create")
    assert bytes(obstore.get(store, "small").bytes()) == b"first"
    assert bytes(obstore.get(store, "large").bytes()) == large
    assert [one["path"] for batch in obstore.list(store) for one in batch] == ["large", "small"]


def test_an_upload_in_parts_goes_on_after_a_restart(s3: S3) -> None:
    s3.create_bucket("parts")
    place = f"{s3.address}/parts/object"
    parts = [b"a" * 5 * 2**20, b"b"]
    with httpx.Client(timeout=30, trust_env=False) as client:
        upload = re.findall("<UploadId>(.+)</UploadId>", client.post(f"{place}?uploads").text)[0]
        tags = [client.put(place, params={"partNumber": 1, "uploadId": upload}, content=parts[0]).headers["etag"]]
        s3.kill()
        s3.restart()
        tags.append(client.put(place, params={"partNumber": 2, "uploadId": upload}, content=parts[1]).headers["etag"])
        listed = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{tag}</ETag></Part>" for n, tag in enumerate(tags, 1)
        )
        whole = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>"
        assert client.post(place, params={"uploadId": upload}, content=whole).status_code == 200
        s3.restart()
        assert client.get(place).content == b"".join(parts)
