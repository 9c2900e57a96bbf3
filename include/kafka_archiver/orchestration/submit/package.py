"""The package as a zip for spark-submit's --py-files."""

import zipfile
from pathlib import Path

import kafka_archiver

# The oldest time that a zip can hold.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_package(folder: Path) -> Path:
    """Write kafka_archiver.zip into `folder`: the same code gives the same bytes."""
    root = Path(kafka_archiver.__file__).parent
    target = folder / "kafka_archiver.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*.py")):
            entry = zipfile.ZipInfo(file.relative_to(root.parent).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
    return target
