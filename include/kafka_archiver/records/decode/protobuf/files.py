"""Compiles Protobuf schemas: .proto text with protoc, or base64 of a FileDescriptorProto, with their imports."""

import base64
import binascii
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.decode.protobuf import structs
from kafka_archiver.records.decode.protobuf.editions import without_edition

# The types that ptars converts by their name. It clamps what is out of range, and does not merge a wrapper that the
# bytes have twice: here they are ordinary messages.
PLAIN = "kafka_archiver.plain"
WRAPPERS = tuple(
    f"{name}Value" for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_SPECIAL = {
    **dict.fromkeys((f"google.protobuf.{name}" for name in WRAPPERS), "google/protobuf/wrappers.proto"),
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    "google.protobuf.Duration": "google/protobuf/duration.proto",
    "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
}
_PLAIN_FILE = "kafka_archiver/plain.proto"


class Compiled(NamedTuple):
    """A schema's file. `docs`: the comment of each message and field, by full name."""

    file: FileDescriptor
    docs: Mapping[str, str]

    def message(self, name: str) -> Descriptor:
        """The message of that name, with or without the package; the first one for no name.

        :raises ConfigError: the file has no such message.
        """
        by_name = {message.full_name: message for message in messages(self.file)}
        if not by_name:
            raise ConfigError(f"the Protobuf schema {self.file.name} has no message")
        package = f"{self.file.package}." if self.file.package else ""
        if not name:
            return next(iter(by_name.values()))
        if name in by_name or f"{package}{name}" in by_name:
            return by_name.get(name) or by_name[f"{package}{name}"]
        raise ConfigError(f"the Protobuf schema has no message {name}; it has {', '.join(by_name)}")


def compiled(schema: Schema) -> Compiled:
    """Compile a schema with everything it imports.

    :raises ConfigError: it is not valid, or an import is missing.
    """
    texts: dict[str, str] = {}
    files: dict[str, FileDescriptorProto] = {}
    main = _collect(f"{schema.fingerprint}.proto", schema, texts, files)
    if texts:
        files.update({file.name: file for file in _protoc(texts, files, schema.fingerprint)})
    ordered = list({file.name: file for file in _in_order(main, files, ())}.values())
    docs = {name: doc for file in ordered for name, doc in _docs(file)}
    try:
        ordered = _without_editions(ordered)
        pool = _pool([_plain_file(), *map(_plainly, ordered)])
        return Compiled(pool.FindFileByName(main), docs)
    except (TypeError, KeyError) as error:
        raise ConfigError(f"schema {schema.fingerprint} is not a valid Protobuf schema: {error}") from None


def _pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _without_editions(files: list[FileDescriptorProto]) -> list[FileDescriptorProto]:
    if not any(file.HasField("edition") for file in files):
        return files
    pool = _pool(files)
    return [
        without_edition(file, pool.FindFileByName(file.name)) if file.HasField("edition") else file for file in files
    ]


def messages(file: FileDescriptor) -> Iterator[Descriptor]:
    """The messages of a file, those within others too."""
    for top in file.message_types_by_name.values():
        yield from _all(top)


def _all(message: Descriptor) -> Iterator[Descriptor]:
    yield message
    for inner in message.nested_types:
        yield from _all(inner)


def _collect(name: str, schema: Schema, texts: dict[str, str], files: dict[str, FileDescriptorProto]) -> str:
    """Sort files by what they are: text or compiled. Returns the file's name."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(f"a Protobuf schema imports {name}; expected a path without a leading / and without ..")
    for reference in schema.references:
        _collect(reference.name, reference.imported, texts, files)
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        texts[name] = schema.text
        return name
    # The name that others import it by.
    file.name = name
    files[name] = file
    return name


def _protoc(
    texts: Mapping[str, str], files: Mapping[str, FileDescriptorProto], which: str
) -> list[FileDescriptorProto]:
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        sources, out, known = Path(folder, "sources"), Path(folder, "out"), Path(folder, "known")
        for name, text in texts.items():
            path = sources / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        arguments = [
            f"-I{sources}",
            f"-I{resources('grpc_tools') / '_proto'}",
            f"-I{_google_types()}",
        ]
        if files:
            # Complete: protoc does not look for the imports of these in the folders.
            every = {f.name: f for file in list(files) for f in _in_order(file, files, (), tuple(texts))}
            known.write_bytes(FileDescriptorSet(file=every.values()).SerializeToString())
            arguments.append(f"--descriptor_set_in={known}")
        arguments += ["--include_imports", "--include_source_info", f"--descriptor_set_out={out}", *texts]
        if protoc.main(["protoc", *arguments]):
            # It has written why to this process's standard error.
            command = [sys.executable, "-m", "grpc_tools.protoc", *arguments]
            why = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            why = why.replace(f"{sources}/", "").replace(f"{which}.proto", "schema")
            lines = "; ".join(line.strip() for line in why.splitlines())
            raise ConfigError(f"schema {which} is not a valid Protobuf schema: {lines}")
        return list(FileDescriptorSet.FromString(out.read_bytes()).file)


def _google_types() -> Path:
    """Return the folder that has `google/type/*.proto`.

    Not through the package `google`: that is a namespace, and a Spark worker finds parts of it in jars and zips, too.
    """
    return Path(str(importlib.import_module("google.type.date_pb2").__file__)).parents[2]


def _in_order(
    name: str, files: Mapping[str, FileDescriptorProto], around: tuple[str, ...], without: tuple[str, ...] = ()
) -> Iterator[FileDescriptorProto]:
    """A file after everything that it imports."""
    if name in around:
        raise ConfigError(f"the Protobuf file {name} imports itself")
    file = files.get(name) or _builtin(name)
    if file is None:
        if name in without:
            return
        raise ConfigError(f"a Protobuf schema imports {name}, which is not one of its references")
    for dependency in file.dependency:
        yield from _in_order(dependency, files, (*around, name), without)
    yield file


def _builtin(name: str) -> FileDescriptorProto | None:
    """A file that comes with Protobuf, or one of Google's common types."""
    if not name.startswith(("google/protobuf/", "google/type/")) or not name.endswith(".proto"):
        return None
    try:
        module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
    except ImportError:
        return None
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def _plain_file() -> FileDescriptorProto:
    file = FileDescriptorProto(name=_PLAIN_FILE, package=PLAIN, syntax="proto3")
    for name, path in _SPECIAL.items():
        original = _builtin(path)
        assert original is not None
        short = name.rpartition(".")[2]
        file.message_type.append(next(message for message in original.message_type if message.name == short))
    file.message_type.extend(structs.definitions())
    return file


def _plainly(file: FileDescriptorProto) -> FileDescriptorProto:
    """The same file with ordinary messages for the special types."""
    plain = FileDescriptorProto.FromString(file.SerializeToString())
    plain.ClearField("source_code_info")
    replaced = [*_SPECIAL, *(f"google.protobuf.{name}" for name in structs.NAMES)]
    names = {f".{name}": f".{PLAIN}.{name.rpartition('.')[2]}" for name in replaced}

    def change(messages: Iterable[DescriptorProto]) -> None:
        for message in messages:
            for field in message.field:
                if field.type_name in names:
                    field.type_name = names[field.type_name]
            change(message.nested_type)

    change(plain.message_type)
    plain.dependency.append(_PLAIN_FILE)
    return plain


def _docs(file: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    comments = {
        tuple(location.path): (location.leading_comments or location.trailing_comments).strip()
        for location in file.source_code_info.location
    }

    def of(message: DescriptorProto, path: tuple[int, ...], scope: str) -> Iterator[tuple[str, str]]:
        name = f"{scope}.{message.name}".lstrip(".")
        yield name, comments.get(path, "")
        for number, field in enumerate(message.field):
            yield f"{name}.{field.name}", comments.get((*path, 2, number), "")
        for number, inner in enumerate(message.nested_type):
            yield from of(inner, (*path, 3, number), name)

    for number, message in enumerate(file.message_type):
        for name, doc in of(message, (4, number), file.package):
            if doc:
                yield name, doc
