"""What is no bug of ours though nobody foresaw it, and what a hint does not say."""

import errno
import os

import pytest

from farm.errors import NoResult, did_you_mean, lacking


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])
def test_what_a_machine_has_run_out_of_is_no_bug(code: int) -> None:
    found = lacking(OSError(code, os.strerror(code), "/tmp/x"))

    assert isinstance(found, NoResult)
    assert "/tmp/x" == found.why


def test_memory_that_is_used_up_is_none_either() -> None:
    found = lacking(MemoryError("4 GiB"))

    assert found is not None
    assert ("not enough memory", "4 GiB") == (found.what, found.why)


@pytest.mark.parametrize("error", [ValueError("x"), OSError("x"), OSError(errno.EIO, "x")])
def test_anything_else_is_what_it_is(error: Exception) -> None:
    assert lacking(error) is None


def test_a_word_is_not_told_to_be_itself() -> None:
    """As of a link that leads nowhere, whose name its folder has."""
    assert "" == did_you_mean("trace.json", ["trace.json"])
    assert "did you mean `trace2.json`?" == did_you_mean(
        "trace.json", ["trace.json", "trace2.json"]
    )
