"""Fields of decoded columns, with metadata for what Arrow cannot say: documentation, Avro names, enums."""

import json
from collections.abc import Sequence

import pyarrow as pa

# The type of a record, message or object without fields: true where it is there, null where it is not.
SET = pa.bool_()


def field(name: str, kind: pa.DataType, *, doc: str = "", symbols: Sequence[str] = (), **more: str) -> pa.Field:
    """A field with what Arrow cannot say in its metadata, for the encoders.

    It is nullable, at any depth: below a null struct Arrow has nulls, and refuses to cast them to a field that is not.

    - `doc`: the documentation
    - `avro.name`: the full name of a record, an enum or a fixed
    - `avro.symbols`: a JSON list of an enum's symbols; the column has strings
    - `avro.logicalType`: uuid or duration, of bytes or text that Arrow has no type for
    - `json`: `number`, a string of a number's digits as they were written; `any`, a string of JSON text

    :param more: other metadata, with _ for the dot.
    """
    metadata = {"doc": doc, **{key.replace("_", "."): value for key, value in more.items()}}
    if symbols:
        metadata["avro.symbols"] = json.dumps(list(symbols))
    return pa.field(name, kind, metadata={key: value for key, value in metadata.items() if value} or None)
