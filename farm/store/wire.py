"""The door to boto3: a client that talks to S3 as we want it to, and its errors in our words."""

import os
import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from botocore import exceptions as met
from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp
from urllib3.exceptions import HTTPError

import farm
from farm.address import Address
from farm.store.contract import Denied, NotFound, StoreError, Unreachable, Unsupported


class Patience(NamedTuple):
    """How often a request is made, and how long each try may take to be heard and answered."""

    attempts: int = 6
    connect_s: float = 5.0
    read_s: float = 60.0


USUAL: Final = Patience()
HASTY: Final = Patience(2, 2.0, 10.0)
# Everything that a call, or reading what it answers, may end with.
TROUBLE: Final = (met.BotoCoreError, met.ClientError, ResponseParserError, HTTPError)
# What reading an answer may end with; botocore repeats none of these.
CUT_SHORT: Final = (
    *(met.ResponseStreamingError, met.IncompleteReadError, met.ReadTimeoutError),
    HTTPError,
)

_CHECKSUMS: Final = "AWS_REQUEST_CHECKSUM_CALCULATION"
_MOST_SAID: Final = 200
_SET_CREDENTIALS: Final = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_NO_CREDENTIALS: Final = (
    *(met.NoCredentialsError, met.PartialCredentialsError, met.CredentialRetrievalError),
    *(met.ProfileNotFound, met.TokenRetrievalError, met.NoAuthTokenError, met.SSOError),
)
_WRONG_CREDENTIALS: Final = (
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
    *("TokenRefreshRequired", "AuthorizationHeaderMalformed"),
)
_HINTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        _WRONG_CREDENTIALS, f"the credentials are wrong or have ended: {_SET_CREDENTIALS}"
    ),
    "RequestTimeTooSkewed": "set this machine's clock: it is minutes off",
}
_RIGHTS: Final = "look whether the bucket is there, and give this role its rights: deploy/s3"
# The bytes were changed or cut on their way there; nothing was stored.
DAMAGED: Final = ("BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "RequestTimeout")

_lock = threading.Lock()
_clients: dict[tuple[int, str, bool, Patience], Any] = {}


def shared_client(address: Address, patience: Patience = USUAL) -> Any:
    """Return this process's client for the server of the address; threads share it."""
    key = (os.getpid(), address.endpoint_url, address.is_path_style, patience)
    with _lock:
        if key not in _clients:
            _clients[key] = new_client(new_session(), address, patience, env=os.environ)
        return _clients[key]


def new_session(**credentials: str) -> Any:
    """Return a session, which clients are made from.

    credentials: as boto3.Session takes them; without any the standard chain is asked.
    """
    import boto3
    from botocore.session import get_session

    core = get_session()
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_when)
    return boto3.Session(botocore_session=core, **credentials)


def new_client(
    session: Any, address: Address, patience: Patience = USUAL, *, env: Mapping[str, str]
) -> Any:
    """Return a client for the server of the address."""
    from botocore.config import Config

    # Many stores answer a checksum in a trailer, which newer boto3 sends unasked, with an error.
    checksums: dict[str, Any] = {}
    if address.endpoint_url and _CHECKSUMS not in env:
        checksums = dict.fromkeys(
            ("request_checksum_calculation", "response_checksum_validation"), "when_required"
        )
    return session.client(
        "s3",
        endpoint_url=address.endpoint_url or None,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": patience.attempts},
            connect_timeout=patience.connect_s,
            read_timeout=patience.read_s,
            max_pool_connections=32,
            tcp_keepalive=True,
            user_agent_extra=f"farm/{farm.__version__}",
            s3={"addressing_style": "path" if address.is_path_style else "virtual"},
            # One string names a store: what the AWS files say of another server does not count.
            ignore_configured_endpoint_urls=True,
            **checksums,
        ),
    )


def status_of(error: Exception) -> int:
    """Return the HTTP status of an answer that was an error, 0 where there was none."""
    if isinstance(error, met.ClientError):
        return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return 0


def code_of(error: Exception) -> str:
    """Return the code by which S3 names an error, "" where there is none."""
    return (
        str(error.response["Error"].get("Code", "")) if isinstance(error, met.ClientError) else ""
    )


def told(error: Exception, *, key: str, store: str, bucket: str = "") -> StoreError:
    """Return the error as the contract of the store says it."""
    if isinstance(error, met.ClientError):
        return _answered(error, key=key, store=store, bucket=bucket)
    why = f"{' '.join(str(error).split())[:_MOST_SAID]} ({store})"
    if isinstance(error, _NO_CREDENTIALS):
        what = "no credentials for the store"
        return Denied(what, key=key, store=store, why=why, hint=_SET_CREDENTIALS)
    if isinstance(error, ResponseParserError):
        return foreign(key=key, store=store, why=why)
    hint = "look at endpoint_url, the network and the server; nothing was lost, try again"
    if isinstance(error, met.SSLError):
        hint = "its certificate is not trusted: AWS_CA_BUNDLE=CA.pem names the authority"
    if isinstance(error, met.NoRegionError):
        hint = "set AWS_REGION"
    return Unreachable("the store cannot be reached", key=key, store=store, why=why, hint=hint)


def _when(text: Any) -> datetime:
    """Return a time as botocore does; its own reader takes two thirds of a listing (measured)."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):  # the form of a header, or seconds
        return cast(datetime, parse_timestamp(text))


def foreign(*, key: str, store: str, why: str = "") -> Unreachable:
    """Return what it means that something other than S3 answers."""
    hint = "look at endpoint_url and AWS_REGION: something else may listen there"
    what = "the store does not answer as S3 does"
    return Unreachable(what, key=key, store=store, why=why, hint=hint)


def _answered(error: met.ClientError, *, key: str, store: str, bucket: str) -> StoreError:
    status, code = status_of(error), code_of(error)
    said = " ".join(str(error.response["Error"].get("Message", "")).split())[:_MOST_SAID]
    why = f"{status} {code}{': ' if said else ''}{said} ({store})"

    def told(kind: type[StoreError], what: str, hint: str) -> StoreError:
        return kind(what, key=key, store=store, why=why, hint=hint)

    if code == "NoSuchKey":
        return NotFound(f"{key} is not in the store", key=key, store=store)
    if code == "NoSuchBucket":
        return told(Unreachable, f"there is no bucket {bucket!r}", "make it, or name another one")
    if status in (401, 403) or code in _HINTS:
        return told(
            Denied,
            f"the store refuses {key!r}" if key else "the store refuses to list",
            _HINTS.get(code, _RIGHTS),
        )
    if 300 <= status < 400 or status in (404, 405):
        return foreign(key=key, store=store, why=why)
    if code in DAMAGED:
        return told(Unreachable, f"{key} was damaged on its way to the store", "try again")
    if status == 429 or (status >= 500 and status != 501):
        return told(Unreachable, "the store has trouble of its own", "nothing was lost, try again")
    hint = "name a store that does: the operator guide lists them"
    return told(Unsupported, f"the store cannot do what {key!r} needs", hint)
