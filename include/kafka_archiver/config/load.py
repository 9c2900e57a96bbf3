"""Load archives from YAML files. A ConfigError names the file, the key, what was expected and what was found."""

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from kafka_archiver.config.archive import Archive
from kafka_archiver.config.unknown import unknown, without_the_only_choices
from kafka_archiver.errors import ConfigError
from kafka_archiver.explain import explain, kind_of
from kafka_archiver.secrets import key_name


class _Loader(yaml.SafeLoader):
    """Leaves times as text, and refuses duplicate keys, of which PyYAML silently takes the last."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - overrides the base class's
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise ConfigError(f"line {key_node.start_mark.line + 1}: key `{key_name(key)}` is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


_QUOTED = re.compile(r"""(['"])(.*?)\1""", re.DOTALL)
# The words and signs of YAML itself.
_OF_YAML = re.compile(r"<[a-z ]+>|[][{},:?-]")


def parse_archive(text: str, file: str) -> Archive:
    """An archive from YAML text.

    :param file: the name of the text in messages; schemas in files are beside it.
    :raises ConfigError: the text is not YAML, or not an archive.
    """
    try:
        content = yaml.load(text, Loader=_Loader)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    except Exception as error:  # noqa: BLE001 - a value can fail in any way, and one file must not stop the others
        raise ConfigError(f"{file}: not YAML: {_problem(error)}") from None
    if not isinstance(content, dict):
        found = kind_of(content)
        raise ConfigError(f"{file}: expected a mapping with the keys archive, source and store; found {found}")
    try:
        archive = Archive.model_validate(without_the_only_choices(content), context={"folder": Path(file).parent})
    except ValidationError as error:
        raise ConfigError("\n".join(f"{file}: {line}" for line in dict.fromkeys(explain(error, unknown)))) from None
    return archive.of_file(file)


def _problem(error: Exception) -> str:
    """The place and kind of a YAML error, without the text that it quotes: that may be a password."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or "a value cannot be read"
    return where + _QUOTED.sub(lambda found: found[0] if _OF_YAML.fullmatch(found[2]) else "…", problem)


def load_archive(path: Path) -> Archive:
    """The archive in one YAML file. Raises ConfigError."""
    try:
        return parse_archive(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def archive_files(folder: Path) -> list[Path]:
    """The YAML files of a folder of archives, sorted. Raises ConfigError when there is no such folder."""
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: no such folder; set ARCHIVER_CONFIG_DIR to the folder with your archives' YAML files"
        )
    return sorted(p for p in folder.iterdir() if p.suffix in (".yaml", ".yml") and not p.name.startswith("."))
