"""The one string that names a store on S3 wholly: bucket, prefix, server, and how to talk to it.

`s3://bucket/prefix?endpoint_url=http%3A%2F%2Fhost%3A8333&path_style=true&sse=aes256`. It holds no
credentials: those come from where every AWS program looks for them.
"""

import re
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from msgspec import Struct

from farm.errors import Refused, did_you_mean

SCHEME: Final = "s3://"
PATH_STYLES: Final = ("auto", "true", "false")

_OPTIONS: Final = ("endpoint_url", "path_style", "sse")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"(?:(?:^|/)(?!\.{1,2}(?:/|$))[A-Za-z0-9!_.*'()=-]+)+")
_SSE: Final = re.compile(r"none|aes256|kms:[A-Za-z0-9:/_-]+")
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+")
_FORM: Final = "write s3://BUCKET or s3://BUCKET/PREFIX"
_ANOTHER: Final = "name a bucket of another kind"
_CREDENTIALS: Final = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"


class Address(Struct, frozen=True, kw_only=True):
    """A store on S3. prefix: without slashes around it, "" for the whole bucket.

    endpoint_url: "" for AWS. path_style: `auto` follows the endpoint: AWS wants the bucket in the
    host's name, most others in the path. sse: none, aes256 or kms:KEY.
    """

    bucket: str
    prefix: str = ""
    endpoint_url: str = ""
    path_style: str = "auto"
    sse: str = "none"

    @property
    def is_path_style(self) -> bool:
        return bool(self.endpoint_url) if self.path_style == "auto" else self.path_style == "true"

    @property
    def url(self) -> str:
        """The one spelling of this address, which `parse` reads back; defaults are left out."""
        given = {
            "endpoint_url": self.endpoint_url,
            "path_style": self.path_style.removeprefix("auto"),
            "sse": self.sse.removeprefix("none"),
        }
        query = urlencode({key: value for key, value in given.items() if value})
        return self._place + (f"?{query}" if query else "")

    @property
    def name(self) -> str:
        """The address as a message says it."""
        return self._place + (f" at {self.endpoint_url}" if self.endpoint_url else "")

    @property
    def _place(self) -> str:
        return SCHEME + self.bucket + (f"/{quote(self.prefix)}" if self.prefix else "")


def parse(url: str) -> Address:
    """Return the address that a URL spells; raises Refused, repeating no password."""
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise Refused("a store on S3 is named in another way", why=_FORM) from error
    if "@" in parts.netloc:
        raise Refused(
            "the address of a store on S3 takes no user and no password", hint=_CREDENTIALS
        )
    if not _BUCKET.fullmatch(parts.netloc) or parts.fragment:
        # What has a colon may be a key and its secret.
        named = "what stands there" if ":" in parts.netloc else repr(parts.netloc)
        raise Refused(f"{named} is no name of a bucket", why=_FORM)
    if parts.netloc.endswith("--x-s3"):
        why = "S3 Express lists keys in no order"
        raise Refused(f"{parts.netloc!r} is a directory bucket", why=why, hint=_ANOTHER)
    prefix = unquote(parts.path).strip("/")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise Refused(f"{prefix!r} is no prefix of a store on S3", why=_FORM)
    return Address(bucket=parts.netloc, prefix=prefix, **_checked(dict(options)))


def check(key: str, value: str) -> None:
    """Raise Refused unless the value is one that `endpoint_url`, `path_style` or `sse` takes."""
    if key == "path_style" and value not in PATH_STYLES:
        raise Refused(f"unknown path_style {value!r}", why=f"known: {', '.join(PATH_STYLES)}")
    if key == "sse" and not _SSE.fullmatch(value):
        raise Refused(f"unknown sse {value!r}", why="known: none, aes256, kms:KEY")
    if key == "endpoint_url" and not _is_endpoint(value):
        raise Refused(  # what it is may be a password
            "endpoint_url is no address of an S3 server",
            why="write http://HOST:PORT or https://HOST, without user and password",
            hint=_CREDENTIALS if "@" in value else "",
        )


def shown(url: str) -> str:
    """Return an s3 URL as it may be printed: what is no option of ours is hidden."""
    place, mark, query = url.partition("?")
    return place + mark + "&".join(map(_shown_option, query.split("&"))) if mark else url


def _checked(options: dict[str, str]) -> dict[str, str]:
    """Return the options that say something; two spellings of a server are one."""
    for key, value in options.items():
        if key not in _OPTIONS:
            why = f"known: {', '.join(_OPTIONS)}"
            hint = did_you_mean(key, list(_OPTIONS)) or _CREDENTIALS
            raise Refused(f"unknown option {key!r} of a store on S3", why=why, hint=hint)
        if value:
            check(key, value)
    return {key: value.rstrip("/") for key, value in options.items() if value}


def _shown_option(text: str) -> str:
    key, equals, value = text.partition("=")
    known = key in _OPTIONS and equals and "@" not in unquote(value)
    return text if known else "***"


def _is_endpoint(value: str) -> bool:
    try:
        parts = urlsplit(value)
        host = parts.netloc.removesuffix(f":{parts.port}" if parts.port else "")
    except ValueError:  # a port that is none, a bracket that is not closed
        return False
    rest = parts.path.strip("/") or parts.query or parts.fragment
    return parts.scheme in ("http", "https") and bool(_HOST.fullmatch(host)) and not rest
