"""The columns that transforms make of a value's columns, as `transform.select`. Pure."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

# Types of Connect's Cast, and Spark's of the same width.
_TYPES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float32": "FLOAT", "float64": "DOUBLE",
    "boolean": "BOOLEAN", "string": "STRING",
}  # fmt: skip
_LAST = "; these columns are the last ones here, and a null value has them, too"


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


class Columns:
    """The columns of a value behind some transforms. Each method says what the YAML has, or nothing if it cannot."""

    def __init__(self) -> None:
        self._star = "*"
        self._prefix = "value."
        self._base: list[str] | None = None
        self._added: dict[str, str] = {}
        self._gone: list[str] = []

    def select(self) -> list[str]:
        """Return `transform.select`; empty if nothing is changed."""
        added = [f"{sql} AS {quoted(name)}" for name, sql in self._added.items()]
        if self._base is not None:
            return [*self._base, *added]
        if not added and self._star == "*":
            return []
        gone = f" EXCEPT ({', '.join(map(quoted, self._gone))})" if self._gone else ""
        return [self._star + gone, *added]

    def insert(self, added: Mapping[str, str], touched: AbstractSet[str]) -> str:
        """Add columns: SQL by names. `touched`: the names that a step has changed before."""
        if not added or self._clash(added, touched):
            return ""
        self._added |= added
        return "transform.select: " + ", ".join(f"{sql} AS {quoted(name)}" for name, sql in added.items()) + _LAST

    def cast(self, specs: Sequence[str], touched: AbstractSet[str]) -> str:
        """Give columns other types: `name:type` each."""
        pairs = [spec.rpartition(":")[::2] for spec in specs]
        names = [name for name, _ in pairs]
        if not pairs or self._base is not None or self._clash(names, touched):
            return ""
        if any(not name or kind not in _TYPES for name, kind in pairs):
            return ""
        self._gone += names
        self._added |= {name: f"CAST({self._prefix}{quoted(name)} AS {_TYPES[kind]})" for name, kind in pairs}
        return f"transform.select: CAST of {', '.join(names)}{_LAST}; a cast that fails makes a bad record"

    def only(self, names: Sequence[str], renames: Mapping[str, str]) -> str:
        """Keep these columns alone, some with other names."""
        if not names or self._changed:
            return ""
        self._base = [
            f"{self._prefix}{quoted(name)}" + (f" AS {quoted(renames[name])}" if name in renames else "")
            for name in names
        ]
        return f"transform.select: {', '.join(self._base)}; in this order, theirs is the schema's"

    def extract(self, field: str) -> str:
        """Put the fields of a column in the place of the value."""
        if not field or self._changed or self._star != "*":
            return ""
        self._prefix = f"value.{quoted(field)}."
        self._star = f"{self._prefix}*"
        return (
            f"transform.select: {self._star}. If {field} is no record, the plan is refused: write then "
            f"`value.{quoted(field)}`. Where it is null, the columns are null"
        )

    def hoist(self, field: str) -> str:
        """Put the value into a column."""
        if not field or self._changed or self._star != "*":
            return ""
        self._base = [f"struct(value.*) AS {quoted(field)}"]
        return f"transform.select: {self._base[0]}"

    @property
    def _changed(self) -> bool:
        return self._base is not None or bool(self._added or self._gone)

    def _clash(self, names: Sequence[str] | Mapping[str, str], touched: AbstractSet[str]) -> bool:
        """Return True if one of the names may be another column here: SQL works before all steps."""
        return "*" in touched or bool({*names} & {*touched, *self._added, *self._gone})
