"""The guides and the code's comments name files, rooms and names of the code: all of them exist."""

import re
import tomllib
from pathlib import Path

import pytest

from scripts.stack.paths import ROOT

pytestmark = pytest.mark.unit
CODE = ROOT / "include" / "kafka_archiver"
BASES = (ROOT, ROOT / "include", CODE, CODE / "orchestration", CODE / "records", ROOT / "tests")
ARCHITECTURE = ROOT / "docs" / "ARCHITECTURE.md"
GUIDES = (ARCHITECTURE, ROOT / "CONTRIBUTING.md")


def paths_in(text: str) -> list[str]:
    """Return the paths in code quotes: `room/`, `room/module`, `room/module.Name`, `docs/page.md`."""
    quoted = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [code for code in quoted if "/" in code and re.fullmatch(r"[.\w/]+", code)]


def exists(path: str) -> bool:
    """Return True if the tree has this file, folder or module, and the module these names."""
    if any((base / path).exists() or (base / f"{path}.py").is_file() for base in BASES):
        return True
    folder, _, last = path.rpartition("/")
    module, *names = last.split(".")
    return any(names and has_names(base / folder / f"{module}.py", names) for base in BASES)


def has_names(file: Path, names: list[str]) -> bool:
    """Return True if a module binds each of these names somewhere."""
    text = file.read_text() if file.is_file() else ""
    return all(re.search(rf"^\s*(?:class |def )?{name}\b\s*[:=(]", text, re.MULTILINE) for name in names)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_each_path_of_a_guide_exists(guide: Path) -> None:
    paths = paths_in(guide.read_text())
    assert len(paths) > 10, "the search finds the paths no more"
    assert not [path for path in paths if not exists(path)]


@pytest.mark.parametrize("guide", sorted(ROOT.glob("docs/**/*.md")), ids=lambda guide: guide.name)
def test_each_python_file_of_a_guide_exists(guide: Path) -> None:
    assert not [path for path in paths_in(guide.read_text()) if path.endswith(".py") and not exists(path)]


def test_each_module_that_a_comment_of_the_code_names_exists() -> None:
    # `store.aws.region` and `spark.driver.memory` are keys, not modules.
    rooms = "|".join({folder.name for folder in CODE.iterdir() if folder.is_dir()} - {"spark", "store"})
    quoted = re.compile(rf"`((?:{rooms})(?:(?:/\w+)+(?:\.\w+)*|(?:\.[a-z_]+){{2,}}(?:\.[A-Z]\w+)?))`")
    named = [(file.name, name) for file in sorted(CODE.rglob("*.py")) for name in quoted.findall(file.read_text())]
    assert len(named) > 15, "the search finds the names no more"
    assert not [(file, name) for file, name in named if not any(map(exists, as_paths(name)))]


def as_paths(name: str) -> list[str]:
    """Return the paths that `room.module.name` may mean, as its last parts may be names in a module."""
    parts = name.split(".")
    return (
        [name] if "/" in name else ["/".join(parts[:n]) + ".".join(["", *parts[n:]]) for n in range(2, len(parts) + 1)]
    )


@pytest.mark.parametrize("path", ["model/gone", "gone/", "model/plan.Gone", "tests/unit/test_gone.py"])
def test_a_path_that_does_not_exist_is_noticed(path: str) -> None:
    assert paths_in(f"see `{path}`") == [path]
    assert not exists(path)


def test_the_rooms_stand_in_the_layers_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract.get("containers") == ["kafka_archiver"])
    expected = {
        room: number for number, layer in enumerate(contract["layers"], 1) for room in re.findall(r"\w+", layer)
    }
    rows = re.findall(r"^\| ?(\d+) ?\| ?(.*?) ?\|", ARCHITECTURE.read_text(), re.MULTILINE)
    assert {room: int(number) for number, cell in rows for room in re.findall(r"`(\w+)/?`", cell)} == expected
    assert [int(number) for number, _ in rows] == sorted(int(number) for number, _ in rows)
