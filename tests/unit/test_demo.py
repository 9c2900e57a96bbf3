"""The demo's pure parts: its stream, and the checks that must be able to fail."""

import io
import json
import re
from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace

import fastavro
import pytest

from scripts.demo.__main__ import where_to_look
from scripts.demo.avro import SCHEMA, as_avro, totals
from scripts.demo.orders import HOUR, IMPORT_HOUR, IMPORTED, PER_HOUR, Batch, Event, Stream, expected, faults

pytestmark = pytest.mark.unit
START = 1_795_219_200_000


@pytest.fixture(scope="module")
def batches() -> list[Batch]:
    return list(Stream(START, scale=0.02).batches())


def test_the_stream_is_always_the_same_and_has_about_200_000_events(batches: list[Batch]) -> None:
    assert list(Stream(START, scale=0.02).batches()) == batches
    # The import comes once whole, and once broken off after two thirds.
    assert 195_000 < sum(PER_HOUR) + IMPORTED * 5 / 3 < 205_000


def test_events_say_what_their_records_say(batches: list[Batch]) -> None:
    for event in (e for b in batches for e in b.events):
        value = json.loads(event.value)
        assert (value["event_id"], value["order_id"]) == (event.id, event.key)
        assert round(datetime.fromisoformat(value["created_at"]).timestamp() * 1000) == event.timestamp
        assert START <= event.timestamp < START + len(PER_HOUR) * HOUR


def test_some_events_are_late_and_some_out_of_order_but_none_for_the_first_hour(batches: list[Batch]) -> None:
    times = [e.timestamp for b in batches for e in b.events]
    newest, behind, late = 0, 0, 0
    first_over = False
    for time in times:
        newest = max(newest, time)
        behind += time < newest
        late += time // HOUR < newest // HOUR
        first_over |= time >= START + HOUR
        assert not (first_over and time < START + HOUR), "the first hour must be one piece of the log"
    assert len(times) / 20 < behind < len(times) / 3
    assert 0 < late < len(times) / 20


def test_the_import_is_aborted_and_repeated_as_a_whole_and_expected_once(batches: list[Batch]) -> None:
    aborted, committed = (next(b for b in batches if b.transaction == t) for t in ("aborted", "committed"))
    assert 0 < len(aborted.events) < len(committed.events)
    assert committed.events[: len(aborted.events)] == aborted.events
    assert {(e.timestamp - START) // HOUR for e in committed.events} == {IMPORT_HOUR}
    assert len(expected(batches)) == sum(len(b.events) for b in batches if b is not aborted)


def test_the_demo_ends_with_the_page_s_address_and_five_things_to_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    world, columns = (
        SimpleNamespace(airflow=SimpleNamespace(url="http://a"), archive=name, dag=f"archive_{name}", topic=name)
        for name in ("orders", "orders_avro")
    )
    where_to_look(world, columns, "scheduled__1")  # type: ignore[arg-type]
    page, *things = re.findall(r"(?:([1-5])[.] )?(http://a/\S+)", capsys.readouterr().out)
    assert page == ("", "http://a/plugin/archiver")
    assert [number for number, _ in things] == list("12345")


def test_every_way_to_be_wrong_is_noticed() -> None:
    expected = {"a": START, "b": START + HOUR - 1, "c": START + HOUR}
    a, b, c = ((id_, at, at // HOUR * HOUR) for id_, at in expected.items())
    assert faults(expected, [a, b, c]) == []
    assert faults(expected, [b, c]) == ["1 records missing (first: a)"]
    assert faults(expected, [a, b, c, a]) == ["1 records there more than once (first: a)"]
    assert faults(expected, [a, b, c, ("d", START, START)]) == ["1 records there that should not be (first: d)"]
    assert faults(expected, [a, ("b", START + HOUR - 1, START + HOUR), c]) == ["1 records in the wrong hour (first: b)"]
    assert faults(expected, [a, ("b", START, START), c]) == ["1 records with another time than produced (first: b)"]


def test_orders_as_avro_are_the_same_orders(batches: list[Batch]) -> None:
    events = batches[0].events
    written = as_avro(events, "orders_avro", "mock://registry")
    assert [event._replace(value=b"") for event in written] == [event._replace(value=b"") for event in events]
    for event, avro in zip(events, written, strict=True):
        # After the frame of five bytes.
        order = fastavro.schemaless_reader(io.BytesIO(avro.value[5:]), SCHEMA)
        assert isinstance(order, dict)
        order |= {
            "amount": float(order["amount"]),
            "created_at": order["created_at"].isoformat(timespec="milliseconds"),
        }
        assert order == json.loads(event.value)


def test_totals_are_exact_and_the_largest_comes_first() -> None:
    def event(country: str, amount: float, *quantities: int) -> Event:
        items = [{"quantity": quantity} for quantity in quantities]
        value = {"country": country, "amount": amount, "created_at": "2026-11-21T05:00:00+00:00", "items": items}
        return Event("", "", START, json.dumps(value).encode(), [])

    sums = totals([event("DE", 0.1, 1), event("FR", 7, 2), event("DE", 0.2, 1, 3)])
    assert sums == [("FR", 1, 2, Decimal(7)), ("DE", 2, 5, Decimal("0.3"))]
