"""Every test here starts a farm in a folder of its own and leaves nothing behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.farm_here import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    here = Place(tmp_path)
    yield here
    here.assert_quiet()
