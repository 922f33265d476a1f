from array import array
from contextlib import contextmanager

import pytest

from workers.backends import LoadFailed
from workers.backends.torch import stages
from workers.backends.torch.stages import Feed
from workers.fakes import FakeClock


def taking(clock, **lengths):
    """Stages that take so long each, and hand over what they got with their own name behind it."""

    def stage(name, ns):
        def run(value):
            clock.advance(ns)
            return [*(value or ()), name]

        return name, run

    return [stage(name.rstrip("_"), ns) for name, ns in lengths.items()]


def fed(batches, *, again=False, clock=None, waits=0):
    """A feed whose passes all have these batches, and the list of the passes that began."""
    clock, began = clock or FakeClock(), []

    def fresh():
        began.append(len(began))
        for each in batches:
            clock.advance(waits)
            yield each

    def ended(count):
        return LoadFailed("window_not_filled", f"after {count}")

    return Feed(fresh, clock=clock, again=again, ended=ended), began


# ── a chain ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_each_stage_gets_what_the_one_before_returned(names):
    """The first gets None, and the iteration returns what the last one does."""
    chain = taking(FakeClock(), **dict.fromkeys(names, 1))

    assert names == stages.chained(chain)()


def test_what_one_iteration_returned_is_not_what_the_next_starts_from():
    seen = []
    run = stages.chained([("a", seen.append), ("b", lambda _: 7)])

    run()
    run()

    assert [None, None] == seen


def test_a_marked_iteration_is_the_same_one_with_a_span_around_each_stage():
    said = []

    @contextmanager
    def mark(name):
        said.append(f"begin {name}")
        yield
        said.append(f"end {name}")

    chain = taking(FakeClock(), forward=1, backward=1)

    assert stages.chained(chain)() == stages.marked(chain, mark)()
    assert ["step/forward", "step/backward"] == [each.split()[1] for each in said[::2]]
    assert ["begin", "end"] * 2 == [each.split()[0] for each in said]


# ── timed apart ──────────────────────────────────────────────────────────────────────────────────


def test_stages_are_timed_one_by_one_in_each_iteration():
    clock = FakeClock()

    found = stages.timed(taking(clock, forward=30, backward=50), 3, clock=clock, sync=None)

    assert {"forward": array("q", [30] * 3), "backward": array("q", [50] * 3)} == found


def test_a_stage_that_comes_twice_is_one_name_whose_times_are_added_up():
    clock = FakeClock()
    chain = taking(clock, forward=30, backward=50, forward_=7)

    found = stages.timed(chain, 2, clock=clock, sync=None)

    assert {"forward": [37, 37], "backward": [50, 50]} == {k: list(v) for k, v in found.items()}


def test_a_device_is_waited_for_at_both_ends_of_a_stage():
    """Its work belongs to the stage that queued it, and none of before to the first."""
    clock, queued = FakeClock(), [400]

    def sync():
        clock.advance(queued[0])
        queued[0] = 0

    def launching(ns):
        def run(_):
            clock.advance(1)
            queued[0] += ns

        return run

    chain = [("forward", launching(100)), ("backward", launching(200))]

    found = stages.timed(chain, 1, clock=clock, sync=sync)

    assert {"forward": [101], "backward": [201]} == {k: list(v) for k, v in found.items()}


def test_timing_stages_says_that_it_goes_on():
    """A slow model must not look as if it hung."""
    clock, heard = FakeClock(), []

    stages.timed(taking(clock, forward=1), 3, clock=clock, sync=None, progress=heard.append)

    assert [1, 2, 3] == heard


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


def test_how_long_each_batch_was_waited_for_is_kept():
    clock = FakeClock()
    feed, _ = fed(["a", "b", "c"], clock=clock, waits=40)

    assert ["a", "b", "c"] == [feed(None) for _ in range(3)]
    assert [40] * 3 == list(feed.waits_ns)


@pytest.mark.seed("S4.26")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_data_that_end_are_an_error_that_knows_how_many_there_were(count):
    """No iteration runs on a batch that was not there, and none is invented."""
    feed, began = fed(range(count))
    for _ in range(count):
        feed(None)

    with pytest.raises(LoadFailed, match=f"after {count}"):
        feed(None)

    assert ([0], count) == (began, len(feed.waits_ns))


def test_a_pass_that_ended_begins_anew_where_that_was_asked():
    feed, began = fed(["a", "b"], again=True)

    assert list("ababa") == [feed(None) for _ in range(5)]
    assert ([0, 1, 2], 5) == (began, len(feed.waits_ns))


def test_empty_data_do_not_begin_anew_for_ever():
    feed, began = fed([], again=True)

    with pytest.raises(LoadFailed, match="after 0"):
        feed(None)

    assert [0] == began


def test_a_second_pass_that_is_empty_is_an_end():
    """A function may yield its batches once only, and no larger data set helps then."""
    once = iter(["a", "b"])
    feed, _ = fed(once, again=True)

    assert ["a", "b"] == [feed(None), feed(None)]
    with pytest.raises(LoadFailed, match="were used up before") as caught:
        feed(None)
    assert "bad_data" == caught.value.kind


def test_a_pass_is_begun_anew_on_request_and_the_old_one_ends():
    """What loads it would go on beside the window, whoever else still holds it."""
    passes = []

    def fresh():
        passes.append(each for each in "abc")
        return passes[-1]

    feed = Feed(fresh, clock=FakeClock(), again=False, ended=lambda _: LookupError())
    feed.restart()
    first = feed(None)

    feed.restart()

    assert ("a", [], "a") == (first, [*passes[0]], feed(None))
