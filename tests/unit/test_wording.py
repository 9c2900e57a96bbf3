"""Numbers, sizes and times as people read them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.wording import count, plain_times, shortened, size, span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 seconds"), (1, "1 second"), (90, "90 seconds"), (119.6, "2 minutes"), (5400, "90 minutes"),
        (7199, "2 hours"), (170_000, "47 hours"), (172_790, "2 days"), (10**9, "11,574 days"),
    ],
)  # fmt: skip
def test_a_time_has_the_unit_that_gives_two_or_three_digits(seconds: float, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


@given(st.integers(0, 10**18))
def test_a_size_is_within_a_hundredth_of_the_bytes_and_never_an_exponent(number: int) -> None:
    value, unit = size(number).replace(",", "").split()
    assert "e" not in value
    assert float(value) * 1000 ** ["B", "kB", "MB", "GB", "TB"].index(unit) == pytest.approx(number, rel=0.01)


def test_a_text_is_cut_behind_a_sentence_or_between_words() -> None:
    assert shortened("Gone. For ever.", 40) == "Gone. For ever."
    assert shortened("5 offsets are gone. Choices: record_loss, fail", 30) == "5 offsets are gone."
    assert shortened("offsets [1468, 1518) of clicks[0] are gone", 22) == "offsets [1468, …"


@given(st.text(), st.integers(3, 30))
def test_a_cut_text_is_never_too_long(text: str, most: int) -> None:
    assert len(shortened(text, most)) <= most


def test_a_count_has_its_noun_in_the_right_number() -> None:
    assert [count(number, "run") for number in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]


@given(st.integers(0, 10**16), st.sampled_from(["Z", "+00:00"]))
def test_a_time_in_a_text_is_shown_to_the_second_and_commands_stay(microseconds: int, zone: str) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    written = moment.isoformat().replace("+00:00", zone)
    shown = f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
    assert plain_times(f"at {written}: run `show {written}`") == f"at {shown}: run `show {written}`"
    assert plain_times(f"manual__{written}_mine failed") == f"manual {shown}_mine failed"


@given(st.text())
def test_a_text_without_a_time_stays(text: str) -> None:
    assert plain_times(text) == text
