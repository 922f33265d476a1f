"""The place of a store: one for each folder however it is spelled, and no password in any."""

from pathlib import Path

import pytest

from farm.errors import Refused
from farm.store import LocalStore, open_store, place


@pytest.mark.parametrize("spelled", ["{}", "{}/", "{}/x/..", "file://{}", "file://localhost{}"])
def test_every_spelling_of_a_folder_has_one_place(tmp_path: Path, spelled: str) -> None:
    assert str(tmp_path) == place(spelled.format(tmp_path))


@pytest.mark.parametrize("spelled", [".farm/store", "~/store", "a folder"])
def test_the_place_of_a_folder_is_where_it_opens(spelled: str) -> None:
    opened = open_store(spelled)

    assert isinstance(opened, LocalStore)
    assert str(opened.root) == place(spelled)


def test_a_file_url_is_read_as_one() -> None:
    assert "/a folder" == place("file:///a%20folder")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/farm", "s3://bucket/farm"),
        ("s3://key:secret@host:9000/farm", "s3://key@host:9000/farm"),
        ("s3://key:se@cret@host/farm?region=x", "s3://key@host/farm?region=x"),
        ("https://:secret@[::1]:9000/", "https://@[::1]:9000/"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown == place(url)


def test_a_store_of_another_scheme_is_refused() -> None:
    for url in ("http://x/y", "ftp://host/x", "file://host/x", "file://"):
        with pytest.raises(Refused, match="s3://BUCKET"):
            open_store(url)


@pytest.mark.parametrize("url", ["file:///%00", "file://[x/y", "http://[x/y"])
def test_an_address_that_is_none_is_refused_and_shown_as_it_is(url: str) -> None:
    with pytest.raises(Refused, match="s3://BUCKET"):
        open_store(url)

    assert url == place(url)


def test_what_is_refused_repeats_no_password() -> None:
    with pytest.raises(Refused, match="'http://key@host/x'"):
        open_store("http://key:secret@host/x")
