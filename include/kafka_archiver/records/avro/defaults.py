"""The default of a field, as its schema has it in JSON, as a value for `pa.array`."""

from decimal import Decimal
from typing import Any

import pyarrow as pa

from kafka_archiver.records.avro import types
from kafka_archiver.records.avro.cursor import BadDatumError
from kafka_archiver.records.avro.schema import Type
from kafka_archiver.records.avro.uuids import parse


def default(avro: Type, value: Any) -> Any:
    """The value of a JSON default. Of a union, the first branch that has such a value.

    :raises BadDatumError: the value does not have the type, as the schemas of some registries have it.
    """
    branch = next((part for part in (avro.parts if avro.kind == "union" else (avro,)) if _has(part, value)), None)
    if branch is None:
        raise BadDatumError(f"found {value!r}, expected a value of type {avro.kind}")
    if avro.kind == "union":
        branch_default = default(branch, value)
        single = types.without_null(avro)
        if single.kind != "union" or branch.kind == "null":
            return branch_default
        place = next(i for i, part in enumerate(single.parts) if part is branch)
        return {types.branch_names(single.parts)[place]: branch_default}
    if avro.kind in ("bytes", "fixed"):
        data = value.encode("iso-8859-1")
        if not pa.types.is_decimal(types.arrow(avro)):
            return data
        return Decimal(f"{int.from_bytes(data, signed=True)}e-{avro.definition.get('scale', 0)}")
    if avro.kind == "string" and avro.logical == "uuid":
        return parse(value.encode())
    if avro.kind == "enum" and value not in avro.definition["symbols"]:
        raise BadDatumError(f"an enum has no symbol {value}")
    if avro.kind == "array":
        return [default(avro.parts[0], item) for item in value]
    if avro.kind == "map":
        return [(key, default(avro.parts[0], item)) for key, item in value.items()]
    if avro.kind == "record":
        return not avro.parts or {
            field["name"]: default(part, value[field["name"]] if field["name"] in value else field["default"])
            for field, part in avro.fields
        }
    return float(value) if avro.kind in ("float", "double") else value


_PYTHON: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "array": list,
    "map": dict,
    "record": dict,
}


def _has(avro: Type, value: Any) -> bool:
    return isinstance(value, _PYTHON.get(avro.kind, str)) and (avro.kind == "boolean") == isinstance(value, bool)
