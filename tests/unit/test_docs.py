"""The pages of docs/, README and CONTRIBUTING: links, anchors, lengths, the reference of keys, the annotated YAML."""

import re
from pathlib import Path

import pytest

from kafka_archiver.config import load_archive
from kafka_archiver.config.sentences import SENTENCES, UNITS
from kafka_archiver.planning.given_schemas import require_readable
from kafka_archiver.records.formats import resolve
from scripts import reference
from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
# Longer than five minutes: what is looked up, not read.
LOOKED_UP = ("FORMAT.md",)
MOST_WORDS = 25_000


def without_code(text: str) -> str:
    """Return a page without its blocks of code and its quoted code."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"``.+?``|`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)
    ]
    assert len(set(titles)) == len(titles), "two headings have one anchor"
    return set(titles)


def links(page: Path) -> list[tuple[str, str]]:
    """Return a page's links to files and headings of the repository: path and anchor."""
    every = re.findall(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)", without_code(page.read_text()))
    return [(path, anchor) for path, anchor in every if "://" not in path]


def leads_nowhere(page: Path, path: str, anchor: str) -> bool:
    """Return True if there is no such file, or no such heading in it."""
    target = page.parent / path if path else page
    return not target.is_file() or bool(anchor and anchor not in anchors(target))


def words(page: Path) -> int:
    return len(page.read_text().split())


@each_page
def test_each_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert [link for link in links(page) if leads_nowhere(page, *link)] == []


def test_the_search_for_links_sees_them() -> None:
    assert sum(len(links(page)) for page in PAGES) > 100
    assert leads_nowhere(ROOT / "README.md", "docs/gone.md", "")
    assert leads_nowhere(ROOT / "README.md", "docs/FORMAT.md", "gone")
    assert not leads_nowhere(ROOT / "README.md", "docs/FORMAT.md", "readers")


def test_each_page_of_the_docs_that_the_code_names_exists() -> None:
    named = set()
    for folder in ("include", "tests", "scripts", "bench", "dags", "docs/monitoring"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".yaml", ".html", ".txt") and file.name != Path(__file__).name:
                named |= set(re.findall(r"\bdocs/([\w/-]+\.md)(?:#([\w-]+))?", file.read_text()))
    assert len(named) > 15
    # Of others' repositories, in the gallery; and a placeholder.
    named -= {name for name in named if re.match(r"products|howto/s3|en/|page\.md", name[0])}
    assert {name for name in named if leads_nowhere(DOCS / "index.md", *name)} == set()


def test_a_page_is_read_in_five_minutes_and_all_in_an_afternoon() -> None:
    assert [page.name for page in PAGES if words(page) > 1_500] == list(LOOKED_UP)
    assert sum(map(words, PAGES)) < MOST_WORDS


def test_each_page_is_in_the_site_s_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (DOCS / "site" / "mkdocs.yml").read_text()))
    assert listed == {str(page.relative_to(DOCS)) for page in PAGES if DOCS in page.parents}


def test_the_reference_is_what_the_code_says() -> None:
    assert reference.PAGE.read_text() == reference.page(), "run `make docs`"


def test_each_key_has_one_sentence() -> None:
    assert sorted(SENTENCES) == sorted(key for key, _ in reference.rows())
    assert UNITS.keys() <= SENTENCES.keys()


def test_the_annotated_yaml_is_valid() -> None:
    archive = load_archive(DOCS / "production.yaml")
    require_readable(archive, resolve(archive.settings, archive.has_columns))
    comments = re.findall(r"^ +\w+:.*? # .*$", (DOCS / "production.yaml").read_text(), re.MULTILINE)
    assert len(comments) >= 20


def test_each_target_and_module_that_the_pages_run_exists() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = set(re.findall(r"(?:^|`)(?:PORT_OFFSET=\d+ )?make ([a-z]+)", text, re.MULTILINE))
    assert run - targets == set()
    modules = set(re.findall(r"python -m ([\w.]+)", text)) - {"pytest"}
    assert len(modules) > 3
    assert [
        name
        for name in modules
        if not any(
            (base / name.replace(".", "/")).with_suffix(".py").is_file()
            or (base / name.replace(".", "/") / "__main__.py").is_file()
            for base in (ROOT, ROOT / "include")
        )
    ] == []
