"""Tells which bytes are text."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.values.columns import Int64s

# Table 3-7 of the Unicode standard.
_UTF8 = (
    r"^(?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|"
    r"\xED[\x80-\x9F][\x80-\xBF]|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|"
    r"\xF4[\x80-\x8F][\x80-\xBF]{2})*\z"
)


def is_binary(kind: pa.DataType) -> bool:
    """Return True if values are bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def not_utf8(values: pa.Array) -> Int64s:
    """The places of the values that are not UTF-8."""
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        good = pc.match_substring_regex(values.cast(pa.large_binary()), _UTF8).fill_null(True)
        return np.flatnonzero(~good.to_numpy(zero_copy_only=False))
    return np.empty(0, np.int64)


def utf8_and_others(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The values that are UTF-8, and the others, as large_binary; null in the places of the rest."""
    values = values.cast(pa.large_binary())
    bad, none = not_utf8(values), pa.nulls(len(values), pa.large_binary())
    if not len(bad):
        return values, none
    if len(bad) == len(values) - values.null_count:
        return none, values
    mask = np.zeros(len(values), bool)
    mask[bad] = True
    return pc.if_else(pa.array(mask), None, values), pc.if_else(pa.array(mask), values, None)


def broken_texts(values: pa.Array) -> Int64s:
    """The places of the values with text that is not UTF-8, at any depth: Arrow believes who makes a string."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return not_utf8(values.cast(pa.large_binary()))
    if pa.types.is_struct(kind):
        broken_fields = [broken_texts(pc.struct_field(values, n)) for n in range(kind.num_fields)]
        return np.unique(np.concatenate(broken_fields)) if broken_fields else np.empty(0, np.int64)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        offsets = values.offsets.to_numpy()
        within = [values.keys, values.items] if pa.types.is_map(kind) else [values.values]
        bad = [broken_texts(child.slice(offsets[0], offsets[-1] - offsets[0])) for child in within]
        return np.unique(np.searchsorted(offsets, np.concatenate(bad) + offsets[0], side="right") - 1)
    return np.empty(0, np.int64)
