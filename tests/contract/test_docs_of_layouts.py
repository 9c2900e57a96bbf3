"""docs/howto/layouts.md and connect.md: their YAML is valid, and each layout is there."""

import re
from collections.abc import Iterator

import pytest
import yaml

from kafka_archiver.config import Archive
from kafka_archiver.model.layouts.registry import LAYOUTS
from kafka_archiver.planning.settings import settings_of
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.contract
TEXT = "".join((ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8") for page in ("layouts", "connect"))
SOURCE = {"archive": "orders", "source": {"topics": ["orders"], "value": {"decode": "json"}}}
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def layouts() -> Iterator[object]:
    """The layouts in code of the text and its tables."""
    for code in re.findall(r"`(\{(?:name|path|fields|offsets).*?\})`", TEXT):
        if "…" not in code:
            yield yaml.safe_load(code)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_yaml_is_valid(block: str) -> None:
    document = {
        "archive": "orders",
        "source": {"topics": ["orders"], "value": {"decode": "json"}},
        **yaml.safe_load(block),
    }
    assert settings_of(Archive.model_validate(document)).layout in LAYOUTS


@pytest.mark.parametrize("layout", layouts())
def test_each_layout_in_the_text_is_one(layout: object) -> None:
    source = {"topics": ["orders"], "value": {"decode": "json"}}
    settings_of(
        Archive.model_validate({"archive": "o", "source": source, "store": {"url": "s3://a/b", "layout": layout}})
    )


def test_each_layout_is_there() -> None:
    assert all(re.search(rf"\b{name}\b", TEXT) or name.startswith(("confluent", "lenses")) for name in LAYOUTS)
