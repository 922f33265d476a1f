"""A real browser without a window, that opens a page from a file as people open it."""

import base64
import hashlib
import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in _NAMES if (found := shutil.which(name))), None)
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH"),
]
LIGHT = "--blink-settings=preferredColorScheme=1"
DARK = "--blink-settings=preferredColorScheme=0"


class Opened(NamedTuple):
    """What the browser made of a page, and what it complained about."""

    dom: str
    console: list[str]


def browse(folder: Path, page: str, *flags: str, width: int = 1200) -> Opened:
    """Return the DOM of a page once its scripts are done."""
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    said = subprocess.run(
        [
            str(CHROMIUM),
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--disable-background-networking", "--disable-breakpad"),
            *("--enable-logging=stderr", "--v=0", "--virtual-time-budget=20000"),
            f"--user-data-dir={folder / 'browser'}",
            f"--window-size={width},1000",
            *flags,
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert 0 == said.returncode, said.stderr
    return Opened(said.stdout, [line for line in said.stderr.splitlines() if "CONSOLE" in line])


def probed(page: str, script: str) -> str:
    """Return the page with one more script, let in by its hash, that looks and touches."""
    body = f"addEventListener('load', () => setTimeout(() => {{{script}}}, 3000));"
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    before, end, after = page.rpartition("</body>")
    allowed = before.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    return f"{allowed}<script>{body}</script>{end}{after}"


def told(script: str) -> str:
    """Return a script that leaves an expression where the dumped DOM shows it."""
    return f"document.body.dataset.told = JSON.stringify({script})"


def answer(found: Opened) -> Any:
    """Return what a script left there."""
    return json.loads(str(_Body(found.dom).given.get("data-told")))


def within(folder: Path, page: str, script: str, *, width: int) -> str:
    """Return a page that holds another one in so narrow a frame, and what a script says there.

    A window of a browser is not so narrow.
    """
    inner = folder / "inner.html"
    inner.write_text(probed(page, f"parent.postMessage({script}, '*')"), encoding="utf-8")
    return (
        f"<!doctype html><body><iframe width={width} height=900 src='{inner.as_uri()}'></iframe>"
        "<script>onmessage = (event) => { document.body.dataset.told = JSON.stringify(event.data) }"
        "</script></body>"
    )


class _Body(HTMLParser):
    """The attributes of the body of a page."""

    def __init__(self, dom: str) -> None:
        super().__init__(convert_charrefs=True)
        self.given: dict[str, str | None] = {}
        self.feed(dom)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self.given = dict(attrs)
