"""The package, and a mapper's code beside the YAML, as zips for spark-submit's --py-files."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import kafka_archiver
from kafka_archiver.config import Archive

# The oldest time that a zip can hold.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_package(folder: Path) -> Path:
    """Write kafka_archiver.zip into `folder`: the same code gives the same bytes."""
    root = Path(kafka_archiver.__file__).parent
    return _zipped(folder / "kafka_archiver.zip", root.parent, root.rglob("*.py"))


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
    return _zipped(folder / "mapper.zip", beside, files) if files else None


def _zipped(target: Path, root: Path, files: Iterable[Path]) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
    return target
