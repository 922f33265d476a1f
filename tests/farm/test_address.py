"""The string that names a store on S3: what it may say, and that it says it in one way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import address
from farm.address import Address
from farm.errors import Refused

SEGMENT = st.from_regex(r"[A-Za-z0-9_=-]{1,8}", fullmatch=True)
ADDRESSES = st.builds(
    Address,
    bucket=st.from_regex(r"[a-z0-9][a-z0-9.-]{1,20}[a-z0-9]", fullmatch=True),
    prefix=st.lists(SEGMENT, max_size=3).map("/".join),
    endpoint_url=st.sampled_from(["", "http://host:8333", "https://s3.example", "http://[::1]:1"]),
    path_style=st.sampled_from(["auto", "true", "false"]),
    sse=st.sampled_from(["none", "aes256", "kms:arn:aws:kms:eu-central-1:1:key/a-b_c"]),
)


@given(ADDRESSES.filter(lambda each: not each.bucket.endswith("--x-s3")))
def test_an_address_is_read_back_from_its_url(given_address: Address) -> None:
    assert given_address == address.parse(given_address.url)
    assert given_address.url == address.shown(given_address.url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a/b",
        "s3://bucket/a/b/",
        "s3://bucket//a/b",
        "s3://bucket/a/b?path_style=auto&sse=none",
        "s3://bucket/a/b?endpoint_url=",
    ],
)
def test_every_spelling_of_a_place_is_one_address(url: str) -> None:
    assert Address(bucket="bucket", prefix="a/b") == address.parse(url)
    assert "s3://bucket/a/b" == address.parse(url).url


def test_a_server_is_the_same_with_and_without_a_slash_behind_it() -> None:
    one, two = (address.parse(f"s3://bucket?endpoint_url=http://h:1{end}") for end in ("", "/"))

    assert one == two
    assert "s3://bucket at http://h:1" == one.name


def test_the_path_style_follows_the_server_unless_it_is_said() -> None:
    server = "endpoint_url=http://host:8333"

    assert not address.parse("s3://bucket").is_path_style
    assert address.parse("s3://bucket?path_style=true").is_path_style
    assert address.parse(f"s3://bucket?{server}").is_path_style
    assert not address.parse(f"s3://bucket?{server}&path_style=false").is_path_style


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3:///prefix",
        "s3://b",
        "s3://Bucket",
        "s3://bucket:9000/farm",
        "s3://bucket--x-s3/farm",
        "s3://bucket/a b",
        "s3://bucket/../other",
        "s3://bucket/a/./b",
        "s3://bucket#x",
        "s3://me:s3cret@bucket",
        "s3://me@bucket",
        "s3://bucket?s3cret",
        "s3://bucket?password=s3cret",
        "s3://bucket?endpoint_url=host:8333",
        "s3://bucket?endpoint_url=ftp://host",
        "s3://bucket?endpoint_url=http://",
        "s3://bucket?endpoint_url=http://host:99999",
        "s3://bucket?endpoint_url=http://[::1",
        "s3://bucket?endpoint_url=http://host/path",
        "s3://bucket?endpoint_url=http://me:s3cret@host",
        "s3://bucket?path_style=maybe",
        "s3://bucket?sse=kms:",
        "s3://[bucket",
    ],
)
def test_what_is_no_address_is_refused_and_no_secret_repeated(url: str) -> None:
    with pytest.raises(Refused) as caught:
        address.parse(url)

    assert "s3cret" not in str(caught.value) + caught.value.hint
    assert caught.value.why or caught.value.hint
