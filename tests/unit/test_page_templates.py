"""A text that says that it refreshes by itself is in a part of the page that newer figures replace."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kafka_archiver

TEMPLATES = Path(kafka_archiver.__file__).parent / "orchestration" / "page" / "templates"
TELLS = re.compile(r"data-refresh|refreshing\(")
AWAITING = [file for file in sorted(TEMPLATES.glob("*.html")) if TELLS.search(file.read_text())]
PARTS = ("div", "section")


class Fixed(HTMLParser):
    """Collects the lines of elements with `data-refresh` that no part with `data-live` contains."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[bool] = []
        self.lines: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag in PARTS:
            self.open.append("data-live" in names)
        if "data-refresh" in names and not any(self.open):
            self.lines.append(self.getpos()[0])

    def handle_endtag(self, tag: str) -> None:
        if tag in PARTS:
            self.open.pop()


@pytest.mark.parametrize("file", [file for file in AWAITING if file.name != "parts.html"], ids=lambda file: file.name)
def test_a_note_that_figures_are_on_their_way_goes_when_they_are_there(file: Path) -> None:
    text = re.sub(r"\{\{ refreshing\(.*?\}\}", '<p data-refresh="2"></p>', file.read_text())
    text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", text, flags=re.DOTALL)
    parser = Fixed()
    parser.feed(text)
    assert parser.lines == []
