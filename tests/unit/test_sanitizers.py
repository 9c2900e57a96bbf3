"""The C sources below the address and the undefined behaviour sanitizer: their own properties, in one other process."""

import sys
from pathlib import Path

import pytest

from kafka_archiver.kafka.drain import library as drain
from kafka_archiver.records.rows import library as rows
from tests.support import sanitized

CHOSEN = {
    ("avro_rows", "decode_avro", "json_rows"): "too_small or one_key or no_record or both_give",
    (
        "drain",
        "senders",
    ): "same_of_odd or cannot_hold or too_small or another_partition or given_back or where_the_first",
}


@pytest.mark.unit
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD")
@pytest.mark.skipif(drain.library() is None or rows.library() is None, reason="the C sources are not compiled")
def test_no_sanitizer_complains(tmp_path: Path) -> None:
    sources = [Path(drain.__file__).with_name("drain.c"), Path(rows.__file__).with_name("rows.c")]
    files = [str(Path(__file__).with_name(f"test_{name}.py")) for names in CHOSEN for name in names]
    done = sanitized.run_tests(sources, tmp_path, " or ".join(CHOSEN.values()), files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 passed" in done.stdout
    assert sorted(path.name.partition("-")[0] for path in tmp_path.glob("*-*.so")) == ["drain", "rows"]
