"""The demo's pure parts: its stream, and the checks that must be able to fail."""

import re
from types import SimpleNamespace

import pytest

from scripts.demo.__main__ import where_to_look
from scripts.demo.orders import HOUR, faults

pytestmark = pytest.mark.unit
START = 1_795_219_200_000


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
