"""The registry of formats, and what distributions may add to it."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest
from pydantic import ValidationError

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats import registry, resolve
from kafka_archiver.records.formats.jsonl import JsonLines
from tests.support.values import plan

pytestmark = pytest.mark.unit


class Lines(JsonLines):
    """Somebody's format."""

    name = "lines"


LINES = Lines()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Entry points of the group; append to it."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(
        "kafka_archiver.messages.entry_points.entry_points", lambda **match: EntryPoints(points).select(**match)
    )
    return points


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "kafka_archiver.formats")


@pytest.mark.usefixtures("installed")
def test_the_packages_own_formats_need_no_entry_point() -> None:
    assert registry.names() == ("avro", "block_gzip", "bytes", "csv", "jsonl", "mak", "parquet", "text")
    assert [registry.get_format(name).name for name in registry.names()] == list(registry.names())


def test_a_distribution_adds_a_format(installed: list[EntryPoint]) -> None:
    installed.append(point("lines", f"{__name__}:LINES"))
    assert registry.names() == ("avro", "block_gzip", "bytes", "csv", "jsonl", "lines", "mak", "parquet", "text")
    assert registry.get_format("lines") is LINES


def test_a_distribution_cannot_replace_a_format(installed: list[EntryPoint]) -> None:
    installed.append(point("jsonl", f"{__name__}:LINES"))
    assert type(registry.get_format("jsonl")) is JsonLines


def test_two_distributions_cannot_add_the_same_name(installed: list[EntryPoint]) -> None:
    installed += [point("lines", "a:A"), point("lines", "b:B")]
    with pytest.raises(ConfigError, match="two distributions add 'lines': a:A and b:B"):
        registry.get_format("lines")


@pytest.mark.parametrize("value", ["no_such_module:X", f"{__name__}:MISSING"])
def test_a_format_that_cannot_be_loaded_is_an_error_of_the_configuration(
    installed: list[EntryPoint], value: str
) -> None:
    installed.append(point("lines", value))
    with pytest.raises(ConfigError, match=f"'lines' \\({value}\\) cannot be loaded: "):
        registry.get_format("lines")


def test_an_unknown_name_lists_the_known_ones(installed: list[EntryPoint]) -> None:
    installed.append(point("lines", f"{__name__}:LINES"))
    with pytest.raises(ConfigError, match=r"store.format: expected avro \| .* \| lines, found 'xml'"):
        resolve(Settings(format="xml"))


@pytest.mark.parametrize(("name", "codec"), [("jsonl", "gzip"), ("avro", "zstd"), ("parquet", "zstd")])
def test_a_format_has_a_codec_for_who_names_none(name: str, codec: str) -> None:
    wished = Settings(format=name, content="record", codec="")
    assert resolve(wished) == wished.model_copy(update={"codec": codec, "encoding": registry.get_format(name).encoding})
    with pytest.raises(ValidationError, match="expected a codec; "):
        plan(settings=wished)


def test_an_unknown_codec_lists_what_the_format_has() -> None:
    with pytest.raises(ConfigError, match=r"store.codec: format avro has bzip2 \| .* \| zstd, found 'lz4'"):
        resolve(Settings(format="avro", codec="lz4", content="record"))


def test_an_impossible_content_lists_what_the_format_has() -> None:
    with pytest.raises(ConfigError, match=r"store.content: format parquet has record, found 'value'"):
        resolve(Settings(format="parquet", codec="zstd", content="value"))
    with pytest.raises(
        ConfigError, match=r"text has only value, .* 'both'; set .*content: value`.*: avro \| csv \| jsonl"
    ):
        resolve(Settings(format="text", codec="", content="both"), decoded=True)
