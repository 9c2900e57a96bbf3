"""The package, and a mapper's code beside the YAML, as zips for spark-submit's --py-files."""

import functools
import io
import marshal
import zipfile
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import kafka_archiver
from kafka_archiver.config import Archive
from kafka_archiver.records.native.compile import SOURCES

PACKAGE = "kafka_archiver.zip"
# Rooms that neither a driver nor its workers import; a test follows their imports.
LEFT_OUT = ("audit", "config", "imports", "orchestration", "planning", "state")
# The oldest time that a zip can hold.
_EPOCH = (1980, 1, 1, 0, 0, 0)
# Of marshal's format: from the third on, bytes depend on who else refers to a name, as in code that is just compiled.
_NO_REFERENCES = 2
# PEP 552: the module belongs to the source with this hash, and nobody need check it.
_UNCHECKED_HASH = (1).to_bytes(4, "little")


def build_package(folder: Path) -> Path:
    """Write kafka_archiver.zip into `folder`: the modules of jobs, each as source and compiled.

    Python would compile a zip's source at each start. A Python of another version takes the source.
    """
    target = folder / PACKAGE
    target.write_bytes(package_of(Path(kafka_archiver.__file__).parent))
    return target


@functools.cache
def package_of(root: Path) -> bytes:
    """Return the zip of the package in `root`: always the code that this process began with, and its children share."""
    left_out = {root / room for room in LEFT_OUT}
    sources = (file for file in root.rglob("*.py") if not left_out & {*file.parents})
    modules = _with_compiled(root.parent, sources)
    zipped = io.BytesIO()
    data = ((_name(file, root.parent), file.read_bytes()) for file in sorted((root / "records").rglob("*.json")))
    _write_zip(zipped, chain(modules, data, _sources_in_c(root)))
    return zipped.getvalue()


def build_mapper(folder: Path, archive: Archive) -> Path | None:
    """Write mapper.zip into `folder`: those modules of an archive's functions that are beside its YAML.

    None: there are none, so they have to be installed where Spark runs.
    """
    functions = [function for function in (archive.transform.mapper, archive.transform.function) if function]
    if not functions or not archive.file:
        return None
    beside = Path(archive.file).absolute().parent
    files: set[Path] = set()
    for module in (name for function in functions for name in (function.function.partition(":")[0], *function.modules)):
        top = beside / module.partition(".")[0]
        files.update(top.rglob("*.py") if top.is_dir() else filter(Path.is_file, [top.with_suffix(".py")]))
    sources = ((_name(file, beside), file.read_bytes()) for file in sorted(files))
    if not files:
        return None
    target = folder / "mapper.zip"
    _write_zip(target, sources)
    return target


def _with_compiled(root: Path, sources: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for file in sorted(sources):
        name, source = _name(file, root), file.read_bytes()
        # From Python's cache where it is current; else compiled, and kept there.
        code = SourceFileLoader(name, str(file)).get_code(name)
        yield name, source
        yield f"{name}c", MAGIC_NUMBER + _UNCHECKED_HASH + source_hash(source) + marshal.dumps(code, _NO_REFERENCES)


def _sources_in_c(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the sources in C, by whose bytes their binaries are known, and the binaries that are compiled here."""
    for source in SOURCES:
        for file in sorted((root / source).parent.glob(f"{Path(source).stem}[.-]*")):
            if file.suffix in (".c", ".so"):
                yield _name(file, root.parent), file.read_bytes()


def _name(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix()


def _write_zip(target: Path | BinaryIO, files: Iterable[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
