"""Every kind of a timeline has a colour that is seen on paper of both shades, and a word."""

import pytest

from farm.report import inks
from farm.trace.timeline import lanes

PAPERS = ("#ffffff", "#111827")


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("place", ["stream", "idle", "thread"])
def test_each_kind_is_seen_on_light_and_dark_paper_and_can_be_written_upon(place: str) -> None:
    """3:1 for what is drawn, 4.5:1 for black or white letters in it (WCAG 2.1)."""
    for _, colour in inks.kinds(place, lanes.kinds()[place]):
        assert all(contrast(colour, paper) >= 3 for paper in PAPERS), colour
        assert max(contrast(colour, "#000000"), contrast(colour, "#ffffff")) >= 4.5


@pytest.mark.parametrize("place", ["stream", "idle", "thread"])
def test_no_two_kinds_of_a_place_are_called_alike(place: str) -> None:
    said = [each for each, _ in inks.kinds(place, lanes.kinds()[place])]

    assert len(said) == len(set(said))


def test_no_two_things_of_a_page_share_a_colour() -> None:
    """But the wait for the device, which is the same in a gap and on the host."""
    seen: dict[str, list[str]] = {}
    for place, words in lanes.kinds().items():
        for said, colour in inks.kinds(place, words):
            seen.setdefault(colour, []).append(said)

    shared = [each for each in seen.values() if len(each) > 1]
    assert [["the host waited for the device", "waits for the device"]] == shared


def test_every_category_that_rules_name_has_a_colour_but_other() -> None:
    known = set(lanes.kinds()["stream"]) - {"other"}

    assert known == set(inks.CATEGORIES)
    assert len(known) == len(set(inks.CATEGORIES.values()))
