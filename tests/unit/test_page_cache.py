"""The page's cache: nobody waits for what is known, and nothing is fetched twice at once."""

import threading
from collections.abc import Iterator

import pytest

from kafka_archiver.orchestration.page.cache import Cache, Near
from tests.support.waiting import until

pytestmark = pytest.mark.unit


class Source:
    """Counts what it is asked; can hold or fail answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.open = threading.Event()
        self.open.set()
        self.failure: Exception | None = None
        self.now = 0.0

    def load(self, key: str, before: str | None) -> str:
        self.asked.append((key, before))
        assert self.open.wait(60)
        if self.failure:
            raise self.failure
        return f"{key}{len(self.asked)}"

    def clock(self) -> float:
        return self.now


@pytest.fixture
def source() -> Iterator[Source]:
    cached = Source()
    yield cached
    cached.open.set()


@pytest.fixture
def cache(source: Source) -> "Cache[str, str]":
    return Cache(source.load, fresh=30, workers=2, clock=source.clock)


def test_a_fresh_value_is_not_fetched_again(cache: "Cache[str, str]", source: Source) -> None:
    assert cache.get("a", wait=60) == "a1"
    source.now = 29
    assert cache.get("a", wait=60) == "a1"
    assert source.asked == [("a", None)]


def test_a_stale_value_is_given_while_a_new_one_is_fetched_once(cache: "Cache[str, str]", source: Source) -> None:
    assert cache.get("a", wait=60) == "a1"
    source.now = 30
    source.open.clear()
    assert [cache.get("a", wait=60) for _ in range(3)] == ["a1"] * 3
    source.open.set()
    until(lambda: cache.get("a") == "a2")
    assert source.asked == [("a", None), ("a", "a1")]


def test_an_unknown_value_is_none_at_once_or_awaited(cache: "Cache[str, str]", source: Source) -> None:
    source.open.clear()
    assert cache.many(["a", "b", "c"]) == {"a": None, "b": None, "c": None}
    source.open.set()
    assert all(cache.many(["a", "b", "c"], wait=60).values())


def test_a_failure_keeps_the_old_value_and_is_tried_again(cache: "Cache[str, str]", source: Source) -> None:
    assert cache.get("a", wait=60) == "a1"
    cache.forget("a".__eq__)
    source.failure = OSError("down")
    assert cache.get("a") == "a1"
    until(lambda: len(source.asked) >= 2 and not cache._wanted)
    assert cache.get("a") == "a1"
    source.failure = None
    until(lambda: cache.get("a") != "a1")


def test_a_first_failure_ends_the_waiting(cache: "Cache[str, str]", source: Source) -> None:
    source.failure = OSError("down")
    assert cache.get("a", wait=60) is None


def test_who_looks_at_one_value_gets_a_near_one_ahead_of_the_others(source: Source) -> None:
    cache: Cache[str, str] = Cache(source.load, fresh=30, workers=1, clock=source.clock)
    assert all(cache.many(["a", "b", "c"], wait=60).values())
    source.now = 9
    assert cache.get("c", near=Near(10, 60)) == "c3"
    source.now = 30
    source.open.clear()
    cache.many(["a", "b", "c"])
    until(lambda: len(source.asked) == 4)
    assert cache.get("c", near=Near(10, 0)) == "c3"
    assert cache.is_awaited("c")
    source.open.set()
    assert cache.get("c", near=Near(10, 60)) == "c5"
    until(lambda: not cache._wanted)
    assert [key for key, _ in source.asked[3:]] == ["a", "c", "b"]


def test_what_is_on_the_screen_goes_before_the_rest_and_what_is_looked_at_alone_before_both(source: Source) -> None:
    cache: Cache[str, str] = Cache(source.load, fresh=200, workers=1, clock=source.clock)
    screen = Near(60, 0)
    assert all(cache.many("abcd", wait=60).values())
    source.now = 100
    assert cache.many("abcd") == {"a": "a1", "b": "b2", "c": "c3", "d": "d4"}
    assert not any(map(cache.is_awaited, "abcd")), "fresh enough for what nobody sees"
    source.open.clear()
    cache.many("a", near=screen)
    until(lambda: len(source.asked) == 5)
    source.now = 250
    cache.many("bcd")
    cache.many("cd", near=screen)
    cache.get("d", near=Near(10, 0))
    source.open.set()
    until(lambda: not cache._wanted)
    assert [key for key, _ in source.asked[4:]] == ["a", "d", "c", "b"]


def test_what_is_outdated_while_it_is_fetched_is_fetched_again(cache: "Cache[str, str]", source: Source) -> None:
    source.open.clear()
    cache.get("a")
    until(lambda: bool(source.asked))
    cache.forget("a".__eq__)
    source.open.set()
    assert cache.get("a", wait=60) == "a2"


def test_values_that_are_no_longer_kept_are_gone(cache: "Cache[str, str]", source: Source) -> None:
    cache.many(["a", "b"], wait=60)
    cache.keep(["b"])
    source.open.clear()
    assert cache.many(["a", "b"])["a"] is None


def test_only_what_was_asked_for_and_has_not_come_is_waited_for(cache: "Cache[str, str]", source: Source) -> None:
    assert cache.get("a", wait=60) == "a1"
    source.now = 1000
    assert cache.waited("a") == 0
    source.failure = ValueError("no answer")
    cache.get("a", near=Near(0, 60))
    source.now = 1300
    assert cache.waited("a") == 300
    source.failure = None
    cache.get("a", near=Near(0, 60))
    assert cache.waited("a") == 0
