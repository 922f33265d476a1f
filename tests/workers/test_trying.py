"""Whether CUDA works on a device: what a child says, or does not say."""

import sys
from typing import Any

import pytest

from workers.gpu import Board
from workers.trying import tried

BOARD = Board(
    uuid="GPU-1", kind="gpu", name="x", pci_bdf="", index=0, memory_bytes=None, sm_count=None
)


def said(code: str, **more: Any) -> str:
    return tried(BOARD, program=(sys.executable, "-c", code), **more)


def test_a_child_that_computes_is_proof() -> None:
    assert "" == said("print('warming up'); print('ok')")


def test_it_sees_that_device_alone() -> None:
    seen = said("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")

    assert "GPU-1" == seen


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('torch sees no CUDA device')", "torch sees no CUDA device"),
        ("import os; os.kill(os.getpid(), 11)", "the child ended with -11"),
        ("pass", "the child ended with 0 and no word"),
        ("print('ok'); raise SystemExit(3)", "the child ended with 3"),
    ],
)
def test_what_is_no_proof_says_why(code: str, why: str) -> None:
    assert why in said(code)


def test_a_child_that_hangs_is_given_up() -> None:
    assert "no word from CUDA in 0.5 s" == said("import time; time.sleep(60)", limit_s=0.5)


def test_without_a_gpu_the_real_child_says_so() -> None:
    """Here; where there is one it computes on it."""
    found = tried(BOARD)

    assert found in ("", "torch sees no CUDA device") or "CUDA" in found
