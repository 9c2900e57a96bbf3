"""The names of an object's columns. Spark and DuckDB do not distinguish cases, so names must differ in more. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError


def require_distinct(kafkas: Sequence[pa.Field], decoded: Sequence[pa.Field], prefix: str) -> None:
    """Check the names of all columns.

    :param kafkas: Kafka's columns, the decoded key and the decoded headers. :param decoded: those of the value.
    :param prefix: of `kafkas`.
    :raises ConfigError: readers do not distinguish two of them.
    """
    if twice := [name for name, count in Counter(f.name.lower() for f in kafkas).items() if count > 1]:
        raise ConfigError(f"source.headers: two headers have the column {twice[0]!r}; decode only one of them")
    reserved = {f.name.lower() for f in kafkas}
    # JSON lines has bytes that are not UTF-8 under the longer names.
    reserved |= {f.name.lower() + "_base64" for f in kafkas if pa.types.is_binary(f.type)}
    for field in decoded:
        if field.name.lower() in reserved:
            raise ConfigError(
                f"store.metadata_prefix: the decoded value has a column {field.name!r}, and Kafka's columns are named "
                f"{', '.join(f.name for f in kafkas)}; set a prefix for Kafka's columns that makes the names differ, "
                f"for example `metadata_prefix: {prefix}_kafka_`"
            )
    if pair := _pair(decoded):
        first, second = pair
        if first == second:
            raise ConfigError(
                f"two columns of the value are named {first!r}: give one of them another name, with AS in "
                "`transform.select`, or in `store.rename`"
            )
        raise ConfigError(
            f"source.value.decode: the decoded value has the columns {first!r} and {second!r}, which Spark and DuckDB "
            f"do not distinguish; rename one of them, for example `store.rename: {{{second}: {second}_2}}`"
        )
    for field in (*kafkas, *decoded):
        _require_distinct_within(field.type, field.name)


def require_not_of_paths(decoded: Sequence[pa.Field], rename: Mapping[str, str], of_paths: Collection[str]) -> None:
    """Check that readers find the value's columns, not those of the paths.

    Spark and DuckDB show the column of the path instead, without a word; pyarrow refuses the files.

    :param rename: new names by old ones; a column that has its own name there is kept.
    :raises ConfigError: a column has the name of one of the paths.
    """
    for name in (field.name for field in decoded):
        if name.lower() in of_paths and rename.get(name) != name:
            raise ConfigError(
                f"store.rename: the decoded value has a column {name!r}, and readers take a column of that name from "
                f"the paths of the objects ({', '.join(of_paths)}); rename the value's, for example "
                f"`store.rename: {{{name}: value_{name}}}`, or keep it with `{{{name}: {name}}}`: a query on folders "
                "sees that of the paths then"
            )


def _require_distinct_within(kind: pa.DataType, name: str) -> None:
    children = [kind.field(number) for number in range(kind.num_fields)]
    if pair := _pair(children):
        first, second = pair
        raise ConfigError(
            f"source: the decoded column {name!r} has within it the fields {first!r} and {second!r}, which Spark and "
            "DuckDB do not distinguish; set a `schema` that has only one of them, or `store.content: record`"
        )
    for child in children:
        _require_distinct_within(child.type, name)


def _pair(fields: Sequence[pa.Field]) -> tuple[str, str] | None:
    """Two names that differ in case only, or not at all."""
    name_of_key: dict[str, str] = {}
    for name in (field.name for field in fields):
        if name.lower() in name_of_key:
            return name_of_key[name.lower()], name
        name_of_key[name.lower()] = name
    return None
