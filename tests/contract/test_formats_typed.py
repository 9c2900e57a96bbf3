"""Decoded records through every format: any schema comes back, and others read the types that the schema says."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.formats.registry import get_format
from kafka_archiver.formats.shared.columns import schema_of, shaped
from tests.support.chunks import Row
from tests.support.formats import small_limits, spilling
from tests.support.typed import (
    FORMATS,
    VALUES,
    decoded,
    encode,
    read,
    recut,
    rows_of,
    target_of,
    values_of,
)

pytestmark = pytest.mark.contract

every_format = pytest.mark.parametrize("name", FORMATS)
PLACES = st.lists(st.integers(0, 25), max_size=4)
many = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@every_format
@many
@given(data=st.data(), field=VALUES, both=st.booleans(), first=PLACES, second=PLACES)
def test_any_schema_comes_back_and_bytes_do_not_depend_on_batches_or_spilling(
    name: str,
    data: st.DataObject,
    field: pa.Field,
    both: bool,
    first: list[int],
    second: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    values = data.draw(st.lists(values_of(field.with_nullable(True)), max_size=8))
    schema = schema_of("both", prefix="_k", value=field) if both else schema_of("value", ["offset"], "_k", value=field)
    target = target_of(name, schema)
    records = decoded([Row(n, n - 1, headers=(("h", None),) * (n % 3)) for n in range(len(values))], values, field)
    with small_limits():
        encoded = encode(target, recut(records, first))
        encoder = get_format(name).encoder(target)
        pieces = (shaped(item, schema) for item in recut(records, second))
        assert encoded == spilling(encoder, pieces, tmp_path_factory.getbasetemp(), 2)
    found = read(target, encoded)
    assert {item.schema for item in found} <= {schema}
    place = {"_ktopic": target.topic, "_kpartition": target.partition} if both else {}
    assert repr(rows_of(found)) == repr([{**place, **row} for row in rows_of([shaped(records, schema)])])
