"""Whether somebody else worked: one that only waits did not."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from workers.backends.torch.counting_threads import Company


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as made:
        made.submit(int).result()
        yield made


def worked(call, *args):
    company = Company()
    with company.watched():
        call(*args)
    return company.has_worked


def test_a_thread_that_only_waits_has_not_worked():
    """A notebook has several."""
    gate, waits = threading.Event(), threading.Event()

    def wait():
        waits.set()
        gate.wait(10)

    thread = threading.Thread(target=wait)
    thread.start()
    waits.wait(10)
    try:
        # it may take a while to come to its wait, and never works again
        assert not all(worked(threading.Event().wait, 0.01) for _ in range(200))
    finally:
        gate.set()
        thread.join()


def test_a_thread_that_lives_already_and_is_given_work_is_heard_of(pool):
    assert worked(lambda: pool.submit(sum, range(10)).result())


def test_a_thread_that_begins_and_ends_inside_is_heard_of():
    def call():
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()

    before = threading.getprofile()

    assert worked(call)
    assert before is threading.getprofile()


def test_the_thread_that_watches_the_parent_is_not_looked_at():
    gate, asked = threading.Event(), threading.Event()

    def live():
        while not gate.is_set():
            asked.set()

    thread = threading.Thread(target=live, name="lifeline")
    thread.start()
    try:
        assert not worked(lambda: (asked.clear(), asked.wait(10)))
    finally:
        gate.set()
        thread.join()
