"""The requests that a store makes of a bucket, under its prefix, each made once."""

import base64
import hashlib
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from farm.address import Address
from farm.errors import Refused
from farm.store import wire
from farm.store.content import CHUNK, chunks, digest_of
from farm.store.contract import NotFound, StoreError, Unreachable, Unsupported
from farm.store.keys import is_folder

PART: Final = 16 << 20


class CutShort(Unreachable):
    """A body ended before its end, which botocore does not repeat: ask again."""


class Goods(NamedTuple):
    """What is to be kept under a key; `source` is read anew for each try."""

    source: bytes | Path
    size: int
    sha256: str
    media_type: str

    @property
    def fits_at_once(self) -> bool:
        return self.size <= PART


class Opened(NamedTuple):
    """An object whose bytes are on their way; reading them may raise CutShort."""

    etag: str
    size: int
    pieces: Iterator[bytes]


class Bucket:
    """The bucket of an address. What it raises is a StoreError, except from `put`."""

    def __init__(self, address: Address, client: Any) -> None:
        self.address = address
        self._client = client
        self._prefix = f"{address.prefix}/" if address.prefix else ""

    def put(self, key: str, goods: Goods, **condition: str) -> str:
        """Put an object under a condition, IfNoneMatch or IfMatch, and return its etag.

        Above 16 MiB it goes in parts, which appear together; what fails half-way is aborted. Raises
        what botocore raises, for the caller to tell a refusal from trouble.
        """
        at = self._at(key)
        made = {
            **at,
            **_encryption(self.address.sse),
            "ContentType": goods.media_type,
            "Metadata": {"sha256": goods.sha256},
        }
        if goods.fits_at_once:
            data = b"".join(chunks(goods.source))
            put = self._client.put_object
            return self._etag(key, put(**made, Body=data, ContentMD5=_md5(data), **condition))
        with self._upload(made) as upload:
            parts = list(self._parts(upload, goods))
            complete = self._client.complete_multipart_upload
            answer = complete(**upload, MultipartUpload={"Parts": parts}, **condition)
            return self._etag(key, answer)

    def head(self, key: str) -> Any:
        """Return what the store says of an object without its bytes."""
        try:
            return self._client.head_object(**self._at(key))
        except wire.TROUBLE as error:
            if wire.status_of(error) == 404:  # an answer without a body names no code
                raise NotFound(
                    f"{key} is not in the store", key=key, store=self.address.name
                ) from error
            raise self.told(error, key) from error

    @contextmanager
    def opened(self, key: str) -> Iterator[Opened]:
        """Yield an object while its bytes come."""
        try:
            answer = self._client.get_object(**self._at(key))
        except wire.TROUBLE as error:
            raise self.told(error, key) from error
        with closing(answer["Body"]) as body:
            etag = self._etag(key, answer)
            yield Opened(etag, answer["ContentLength"], self._pieces(key, body))

    def listed(self, prefix: str, after: str) -> Iterator[Any]:
        """Yield the objects of a listing as S3 tells them, `Key` without the store's prefix.

        Raises Unsupported where keys do not ascend.
        """
        last = ""
        for page in self._pages(prefix, after):
            for each in page.get("Contents", ()):
                if each["Key"] <= last:
                    raise Unsupported(
                        "the store does not list its keys in ascending order",
                        key=prefix,
                        store=self.address.name,
                        why=f"{each['Key']!r} came after {last!r}",
                        hint="name a store that does: the operator guide lists them",
                    )
                last = each["Key"]
                yield {**each, "Key": last.removeprefix(self._prefix)}

    def told(self, error: Exception, key: str) -> StoreError:
        """Return what botocore raised as the contract of the store says it."""
        store, bucket = self.address.name, self.address.bucket
        return wire.told(error, key=key, store=store, bucket=bucket)

    def _etag(self, key: str, answer: Any) -> str:
        """Return the etag of an answer; a page that says 200 to everything has none."""
        if not answer.get("ETag"):
            raise wire.foreign(key=key, store=self.address.name)
        return etag_of(answer)

    def _at(self, key: str) -> dict[str, Any]:
        return {"Bucket": self.address.bucket, "Key": self._prefix + key}

    @contextmanager
    def _upload(self, made: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the names of an upload in parts, which is aborted unless the caller completes."""
        upload_id = self._client.create_multipart_upload(**made)["UploadId"]
        upload = {"Bucket": made["Bucket"], "Key": made["Key"], "UploadId": upload_id}
        try:
            yield upload
        except BaseException:  # Ctrl-C too: parts that nobody completes are paid for, and unseen
            with suppress(*wire.TROUBLE):
                self._client.abort_multipart_upload(**upload)
            raise

    def _parts(self, upload: dict[str, Any], goods: Goods) -> Iterator[dict[str, Any]]:
        send = self._client.upload_part
        for number, data in enumerate(chunks(goods.source, size=PART), 1):
            answer = send(**upload, PartNumber=number, Body=data, ContentMD5=_md5(data))
            yield {"PartNumber": number, "ETag": answer["ETag"]}

    def _pieces(self, key: str, body: Any) -> Iterator[bytes]:
        try:
            yield from body.iter_chunks(CHUNK)
        except wire.CUT_SHORT as error:
            raise CutShort(
                f"{key} was cut short on its way here",
                key=key,
                store=self.address.name,
                why=str(error),
                hint="look at the network and the server, then try again",
            ) from error

    def _pages(self, prefix: str, after: str) -> Iterator[Any]:
        asked = {"Bucket": self.address.bucket, "Prefix": self._prefix + prefix}
        if after:
            asked["StartAfter"] = self._prefix + _just_before(after)
        while True:
            try:
                page = self._client.list_objects_v2(**asked)
            except wire.TROUBLE as error:
                raise self.told(error, "") from error
            if "IsTruncated" not in page:  # any page of XML reads as an empty listing
                raise wire.foreign(key=prefix, store=self.address.name)
            yield page
            if not page["IsTruncated"]:
                return
            asked["ContinuationToken"] = page["NextContinuationToken"]


def goods_of(source: bytes | Path, media_type: str) -> Goods:
    """Return the source with its size and digest; raises Refused for an unreadable file."""
    try:
        size = len(source) if isinstance(source, bytes) else os.stat(source).st_size
    except OSError as error:
        raise Refused(f"cannot read {str(source)!r}", why=error.strerror or "") from error
    return Goods(source, size, digest_of(chunks(source)), media_type)


def etag_of(answer: Any) -> str:
    """Return the etag of an answer, without the quotes that it comes in."""
    return str(answer["ETag"]).strip('"')


def _just_before(after: str) -> str:
    """Return what a listing may start after and still hold every key that follows `after`.

    SeaweedFS passes over a whole folder that is named exactly (measured, 4.48). `~` follows every
    sign of a key, so nothing lies between the two.
    """
    if is_folder(after.rpartition("/")[2]):
        return f"{after[:-1]}{chr(ord(after[-1]) - 1)}~"
    return after


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _encryption(sse: str) -> dict[str, str]:
    if sse == "none":
        return {}
    if sse == "aes256":
        return {"ServerSideEncryption": "AES256"}
    return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": sse.removeprefix("kms:")}
