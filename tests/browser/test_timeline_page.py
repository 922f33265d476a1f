"""The timeline of a trace in a real browser: drawn, looked into by keys, narrow and dark."""

import re
from pathlib import Path

from farm.cli.profile import trace_page
from tests.browser.browsing import DARK, LIGHT, MARKS, answer, browse, probed, told, within
from tests.farm.report.traces import NAMES, hostile, small

pytestmark = MARKS

HANDS = """
  const at = (id) => document.getElementById(id);
  // No frame is due where nobody looks; after printing all is drawn anew, and at once.
  const drawn = () => dispatchEvent(new Event('afterprint'));
  const press = (...keys) => {
    for (const key of keys) {
      at('frame').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    }
    drawn();
  };
  const inks = () => {
    const { width, height } = at('canvas'), copy = document.createElement('canvas');
    Object.assign(copy, { width, height });
    const pen = copy.getContext('2d', { willReadFrequently: true });
    pen.drawImage(at('canvas'), 0, 0);
    const all = pen.getImageData(0, 0, width, height).data;
    const seen = new Map();
    for (let i = 0; i < all.length; i += 4) {
      const ink = all.slice(i, i + 3).join();
      seen.set(ink, (seen.get(ink) || 0) + 1);
    }
    return [...seen].sort((a, b) => b[1] - a[1]);
  };
"""


def test_it_is_drawn_and_answers_to_keys_and_nothing_complains(tmp_path: Path):
    """Hostile names are drawn and told as what they are; no request was made or blocked."""
    script = (
        HANDS
        + """
      drawn();
      const seen = [];
      const look = () =>
        seen.push([at('shown').textContent, at('detail').textContent, inks().length]);
      look();
      press('+', '+'); look();
      press('ArrowDown'); look();
      press('.'); look();
      press('f', 'Escape'); look();
      press(']'); look();
      const button = document.querySelector('#legend button'), before = inks().length;
      button.click(); drawn();
      const picked = [button.getAttribute('aria-pressed'), inks().length - before];
    """
    )
    page = probed(trace_page.page(hostile(), name="small.json"), script + told("[seen, picked]"))

    found = browse(tmp_path, page, LIGHT)

    assert [] == found.console
    seen, picked = answer(found)
    views, details, colours = zip(*seen, strict=True)
    assert min(colours) > 10
    assert views[0] == views[4]
    assert views[0] not in (views[1], views[5])
    assert 3 == len({details[1], details[2], details[3]})
    assert details[0] == details[1] == details[4]
    assert re.search(r"launched by\s*cudaLaunchKernel on thread .* before it began", details[2])
    assert "true" == picked[0]
    assert picked[1] != 0
    assert any(name[:20] in details[2] + details[3] for name in NAMES)
    assert not re.search(r"<img\b", re.sub(r"(?s)<script.*?</script>", "", found.dom))


def test_a_telephone_in_the_dark_has_all_of_it_without_sideways_scroll(tmp_path: Path):
    """At 390 px; the paper of the drawing is that of the page."""
    script = (
        "(() => {"
        + HANDS
        + """
      return [document.documentElement.scrollWidth, innerWidth, at('canvas').clientWidth,
        inks().length, inks()[0][0], getComputedStyle(document.body).backgroundColor];
    })()"""
    )
    outer = within(tmp_path, trace_page.page(small(), name="small.json"), script, width=390)

    found = browse(tmp_path, outer, DARK)

    assert [] == found.console
    width, window, canvas, colours, paper, background = answer(found)
    assert width <= window <= 390
    assert 300 < canvas <= 390
    assert colours > 10
    assert f"rgb({paper.replace(',', ', ')})" == background == "rgb(17, 24, 39)"


def test_a_page_without_a_timeline_has_its_tables_and_no_complaint(tmp_path: Path):
    """Of an analysis that was kept."""
    page = trace_page.page(small()._replace(made=None), name="profile.json")
    script = told("[...document.querySelectorAll('th button')].length")

    found = browse(tmp_path, probed(page, script))

    assert [] == found.console
    assert answer(found) > 10
