"""Where documents lie: the builders agree with the grammar, and the grammar with a file system."""

from hypothesis import assume, given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.store import (
    CATALOG_PREFIX,
    HEAD_KEY,
    blob_key,
    bundle_key,
    card_key,
    catalog_key,
    check_key,
    event_key,
    job_key,
    manifest_key,
    part_key,
    profile_ids,
    profile_key,
    tag_key,
)
from farm.store.keys import promised_digest

JOB = "0123456789abcdef" * 2
SHA = "fedcba9876543210" * 4


def test_each_builder_gives_the_documented_key() -> None:
    assert f"jobs/v1/01/{JOB}.json" == job_key(JOB)
    assert "runs/v1/r-7f3a91/manifest.json" == manifest_key("r-7f3a91")
    assert f"cards/v1/{SHA}.json" == card_key(SHA)
    assert f"inbox/v1/date=2026-11-30/{JOB}.{SHA}.json" == profile_key("2026-11-30", JOB, SHA)
    assert f"blobs/v1/samples/fe/{SHA}.npz" == blob_key("samples", SHA, "npz")
    assert f"blobs/v1/trace/fe/{SHA}.json.gz" == blob_key("trace", SHA, "json.gz")
    assert f"bundles/v1/fe/{SHA}.tar" == bundle_key(SHA)
    assert "tags/last-release.json" == tag_key("last-release")
    assert f"tables/profiles/v1/month=2026-11/{SHA}.parquet" == part_key("2026-11", SHA)
    assert "tables/profiles/v1/manifest/00000007.json" == catalog_key(7)
    assert "tables/profiles/v1/head.json" == HEAD_KEY
    assert f"events/v1/{SHA}.json" == event_key(SHA)


def test_manifests_are_listed_in_the_order_of_their_numbers() -> None:
    numbers = [0, 9, 10, 99, 12345678]

    assert numbers == sorted(numbers, key=catalog_key)
    assert all(catalog_key(each).startswith(CATALOG_PREFIX) for each in numbers)


def test_a_listing_alone_tells_job_and_profile() -> None:
    """The ids can be read back from an inbox key, and from no other."""
    assert (JOB, SHA) == profile_ids(profile_key("2026-11-30", JOB, SHA))
    assert None is profile_ids(job_key(JOB))


def test_a_content_addressed_name_promises_its_digest() -> None:
    assert SHA == promised_digest(f"{SHA}.npz")
    assert SHA == promised_digest(f"{JOB}.{SHA}.json")
    assert None is promised_digest(f"{JOB}.json")
    assert None is promised_digest(f"{SHA}0.json")


KINDS = ("samples", "telemetry", "layers", "trace", "log")
LAYOUT = [
    job_key(JOB),
    manifest_key("r-7f3a91"),
    manifest_key("r-7f3a92"),
    card_key(SHA),
    profile_key("2026-11-30", JOB, SHA),
    *(blob_key(each, SHA, "npz") for each in KINDS),
    bundle_key(SHA),
    part_key("2026-11", SHA),
    catalog_key(1),
    HEAD_KEY,
    event_key(SHA),
    tag_key("base"),
    tag_key("base-2"),
    "meta/layout.json",
    "meta/probe.json",
]


def test_no_folder_of_the_layout_begins_the_name_of_its_neighbour() -> None:
    """Else a server that sorts by folders, as SeaweedFS does, would list in another order than S3.

    Of `b/x` and `b-c/x`, or `b.json`, S3 lists the last ones first.
    """
    for one in LAYOUT:
        folders = [one[:end] for end, sign in enumerate(one) if sign == "/"]
        for folder in folders:
            assert not [each for each in LAYOUT if each.startswith((f"{folder}-", f"{folder}."))]


NEARLY_A_KEY = st.one_of(
    st.sampled_from(["a.b", "a/a.b", "A.b", "a.b/a.b", "a", "a/..", "a-.b", "a/a.B"]),
    st.from_regex(r"([ab]{1,2}/){0,2}[ab]-?\.[ab]{1,2}", fullmatch=True),
)


@given(NEARLY_A_KEY, NEARLY_A_KEY, st.booleans())
def test_no_key_is_both_file_and_folder_nor_differs_by_case(
    one: str, two: str, below: bool
) -> None:
    """Of two allowed keys neither lies below the other, and lower case changes neither."""
    two = f"{one}/{two}" if below else two
    assume(_is_allowed(one) and _is_allowed(two))

    assert not two.startswith(one + "/")
    assert (one == two) == (one.lower() == two.lower())
    assert not {"", ".", ".."} & set(one.split("/"))


def _is_allowed(key: str) -> bool:
    try:
        return check_key(key) == key
    except Refused:
        return False
