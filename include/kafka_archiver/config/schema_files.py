"""Schemas that the YAML gives: in a file beside it, or in the YAML itself."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from kafka_archiver.config.yaml_limits import read_bounded
from kafka_archiver.messages.secrets import SECRET
from kafka_archiver.model.schemas import Kind, Reference, Schema

_IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"\s*;', re.MULTILINE)
# Other text may be an address with a password.
_FILE = re.compile(r"[\w./ -]+\.\w+")
# Of a .proto file: a schema's document has each import as often as it is imported.
_MOST_IMPORTS, _DEEPEST_IMPORT = 1000, 50
_MOST_CHARACTERS = 8 << 20
# Every Protobuf library has these.
_WELL_KNOWN = "google/protobuf/"


def read_schema(value: Any, kind: Kind, folder: Path | None) -> Schema:
    """The schema that the YAML gives.

    :param value: a file's name relative to `folder`; or a list of columns, or a JSON Schema.
    :raises ValueError: there is no such file, or it is not JSON where it must be.
    :raises PydanticCustomError: it is neither a file's name nor a schema; no error shows it.
    """
    if isinstance(value, dict) and value.keys() == Schema.model_fields.keys():
        # An archive as JSON, for another process.
        return Schema.model_validate(value)
    if isinstance(value, list | dict):
        if kind != "JSON":
            raise ValueError("expected the name of a file beside the YAML; only json and json_schema take it in place")
        return Schema(kind=kind, text=json.dumps(value))
    if not (isinstance(value, str) and _FILE.fullmatch(value)):
        raise PydanticCustomError(SECRET, "the name of a file beside the YAML (orders.avsc), columns, or `infer`")
    text = _text(value, folder or Path())
    if kind == "PROTOBUF":
        return Schema(kind=kind, text=text, references=_Imports(folder or Path()).of(value, text, ()))
    try:
        json.loads(text)
    except ValueError as error:
        raise ValueError(f"expected a schema as JSON in the file {value} ({error})") from None
    return Schema(kind=kind, text=text)


def _text(name: str, folder: Path) -> str:
    try:
        return read_bounded(folder / name)
    except OSError as error:
        raise ValueError(
            f"expected a file beside the YAML; {folder / name} cannot be read ({error.strerror or error})"
        ) from None
    except ValueError as error:
        raise ValueError(f"{error}: the file {folder / name}") from None


class _Imports:
    """The .proto files that .proto files import, by the same folder. Each is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Reference] = {}
        # By file, how many files it imports, and the characters of all, each counted as often as it is imported.
        self._counts: dict[str, int] = {}
        self._sizes: dict[str, int] = {}

    def of(self, name: str, text: str, above: tuple[str, ...]) -> tuple[Reference, ...]:
        """Return what a file imports.

        :raises ValueError: a file imports itself, or too many others.
        """
        if name in above:
            raise ValueError(f"expected .proto files that do not import themselves; {name} does, by way of {above[-1]}")
        imported = [other for other in dict.fromkeys(_IMPORT.findall(text)) if not other.startswith(_WELL_KNOWN)]
        references = tuple(self._reference(other, (*above, name)) for other in imported)
        self._counts[name] = sum(1 + self._counts[other] for other in imported)
        if self._counts[name] > _MOST_IMPORTS or len(above) > _DEEPEST_IMPORT:
            raise ValueError(
                f"expected at most {_MOST_IMPORTS:,} imports and {_DEEPEST_IMPORT} levels of them; {name} has "
                f"{self._counts[name]:,}, each file counted as often as others import it"
            )
        self._sizes[name] = len(text) + sum(self._sizes[other] for other in imported)
        if self._sizes[name] > _MOST_CHARACTERS:
            raise ValueError(
                f"expected at most {_MOST_CHARACTERS:,} characters in a .proto file and its imports; {name} has "
                f"{self._sizes[name]:,}, each file counted as often as others import it"
            )
        return references

    def _reference(self, name: str, above: tuple[str, ...]) -> Reference:
        if name not in self._known or name in above:
            text = _text(name, self._folder)
            below = self.of(name, text, above)
            self._known[name] = Reference(name=name, imported=Schema(kind="PROTOBUF", text=text, references=below))
        return self._known[name]
