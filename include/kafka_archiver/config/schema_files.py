"""Schemas that the YAML gives: in a file beside it, or in the YAML itself."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from kafka_archiver.schemas import Kind, Reference, Schema
from kafka_archiver.secrets import SECRET

_IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"\s*;', re.MULTILINE)
# Other text may be an address with a password.
_FILE = re.compile(r"[\w./ -]+\.\w+")
# Every Protobuf library has these.
_WELL_KNOWN = "google/protobuf/"


def read_schema(given: Any, kind: Kind, folder: Path | None) -> Schema:
    """The schema that the YAML gives.

    :param given: a file's name relative to `folder`; or a list of columns, or a JSON Schema.
    :raises ValueError: there is no such file, or it is not JSON where it must be.
    :raises PydanticCustomError: it is neither a file's name nor a schema; no error shows it.
    """
    if isinstance(given, dict) and given.keys() == Schema.model_fields.keys():
        # An archive as JSON, for another process.
        return Schema.model_validate(given)
    if isinstance(given, list | dict):
        if kind != "JSON":
            raise ValueError("expected the name of a file beside the YAML; only json and json_schema take it in place")
        return Schema(kind=kind, text=json.dumps(given))
    if not (isinstance(given, str) and _FILE.fullmatch(given)):
        raise PydanticCustomError(SECRET, "the name of a file beside the YAML (orders.avsc), columns, or `infer`")
    text = _text(given, folder or Path())
    if kind == "PROTOBUF":
        return Schema(kind=kind, text=text, references=_imports(given, text, folder or Path(), ()))
    try:
        json.loads(text)
    except ValueError as error:
        raise ValueError(f"expected a schema as JSON in the file {given} ({error})") from None
    return Schema(kind=kind, text=text)


def _text(name: str, folder: Path) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"expected UTF-8 in the file {folder / name}") from None
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected a file beside the YAML; {folder / name} cannot be read "
            f"({getattr(error, 'strerror', None) or error})"
        ) from None


def _imports(name: str, text: str, folder: Path, above: tuple[str, ...]) -> tuple[Reference, ...]:
    """The .proto files that a .proto file imports, by the same folder."""
    if name in above:
        raise ValueError(f"expected .proto files that do not import themselves; {name} does, by way of {above[-1]}")
    found = []
    for other in _IMPORT.findall(text):
        if not other.startswith(_WELL_KNOWN):
            content = _text(other, folder)
            below = _imports(other, content, folder, (*above, name))
            found.append(Reference(name=other, imported=Schema(kind="PROTOBUF", text=content, references=below)))
    return tuple(found)
