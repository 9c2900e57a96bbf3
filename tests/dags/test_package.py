"""The zip that executors get."""

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafka_archiver
from kafka_archiver.jobs.registry import JOBS
from kafka_archiver.orchestration.submit.package import LEFT_OUT, build_package, package_of

pytestmark = pytest.mark.dags


def test_the_same_code_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "kafka_archiver"
    (source / "deep" / "__pycache__").mkdir(parents=True)
    (source / "imports").mkdir()
    for name in ("__init__.py", "b.py", "deep/__init__.py", "deep/a.py", "imports/c.py"):
        (source / name).write_text(f"# {name}\n")
    monkeypatch.setattr(kafka_archiver, "__file__", str(source / "__init__.py"))
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    before = build_package(first).read_bytes()
    os.utime(source / "b.py", (1, 1))
    (source / "b.py").chmod(0o755)
    # As another process, which has made no zip yet.
    package_of.cache_clear()
    assert build_package(second).read_bytes() == before
    sources = ["__init__.py", "b.py", "deep/__init__.py", "deep/a.py"]
    expected = [f"kafka_archiver/{name}{end}" for name in sources for end in ("", "c")]
    assert zipfile.ZipFile(first / "kafka_archiver.zip").namelist() == expected


def test_the_zip_has_every_module_that_jobs_import_and_no_room_that_they_do_not(tmp_path: Path) -> None:
    shipped = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in zipfile.ZipFile(build_package(tmp_path)).namelist()
        if name.endswith(".py")
    }
    assert not {name for name in shipped if name.split(".")[1:2] and name.split(".")[1] in LEFT_OUT}
    modules = _modules()
    tasks = {name for name in modules if name.startswith("kafka_archiver.spark.")}
    mains = {place.partition(":")[0] for job in JOBS.values() for place in job}
    needed = _imported(modules, {"kafka_archiver.driver.main", *mains, *tasks})
    assert len(needed) > 200
    assert needed - shipped == set()


def test_workers_take_the_compiled_module_and_another_python_the_source(tmp_path: Path) -> None:
    package = build_package(tmp_path)
    assert _cached(package) == ".pyc"
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(package) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            # The first four bytes name Python's version.
            target.writestr(name, b"\0\0\0\0" + content[4:] if name.endswith(".pyc") else content)
    assert _cached(other) == ".py"


def _cached(package: Path) -> str:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import kafka_archiver.values.ranges as m; print(m.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # -S: without the installed package.
    command = [sys.executable, "-S", "-c", program, str(package)]
    place = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    assert place.startswith(str(package))
    return Path(place).suffix


def _modules() -> dict[str, Path]:
    root = Path(kafka_archiver.__file__).parents[1]
    names = ((file.relative_to(root).with_suffix("").parts, file) for file in root.glob("kafka_archiver/**/*.py"))
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): file for parts, file in names}


def _imported(modules: dict[str, Path], first: set[str]) -> set[str]:
    """The modules that these import, also within functions, and those whose name a string is."""
    visited: set[str] = set()
    waiting = [*first]
    while waiting:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        parts = name.split(".")
        waiting += [".".join(parts[:count]) for count in range(1, len(parts))]
        if name == "kafka_archiver":
            # Its functions open an archive for programs, and make DAGs for Airflow: no job calls them.
            continue
        waiting += [other for other in _named(ast.parse(modules[name].read_text())) if other in modules]
    return visited


def _named(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.keyword(arg="from_connection"):
                # Airflow's tasks load it, to give a job the store's options.
                continue
            case ast.ImportFrom(module=str(module)):
                yield from (module, *(f"{module}.{alias.name}" for alias in node.names))
            case ast.Constant(value=str(text)):
                yield text.partition(":")[0]
        yield from _named(node)
