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
    told = [given for given in (archive.transform.mapper, archive.transform.function) if given]
    if not told or not archive.file:
        return None
    beside = Path(archive.file).absolute().parent
    found: set[Path] = set()
    for module in (name for given in told for name in (given.function.partition(":")[0], *given.modules)):
        top = beside / module.partition(".")[0]
        found.update(top.rglob("*.py") if top.is_dir() else filter(Path.is_file, [top.with_suffix(".py")]))
    return _zipped(folder / "mapper.zip", beside, found) if found else None


def _zipped(target: Path, root: Path, files: Iterable[Path]) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
    return target
