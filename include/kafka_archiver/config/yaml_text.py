"""Parses YAML text: which YAML is refused (keys given twice, too deep), and the environment variables in it. Pure.

Variables in values: `${NAME}`, `${NAME:-default}`; `$${` is `${` itself.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from kafka_archiver.config.yaml_limits import DEEPEST, MOST_VALUES
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.secrets import key_name
from kafka_archiver.messages.yaml_faults import Fault, FaultyYamlError

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# `$` elsewhere is itself, also `$$`: regular expressions and passwords have it.
# A default may have pairs of braces, as patterns of paths have, but no variable.
_DEFAULT = r"(?:[^{}$]|\$(?!\{)|\{[^{}]*\})*"
_PLACE = re.compile(rf"\$(\$\{{)|\$\{{(?:({NAME})(?::-({_DEFAULT}))?(\}}))?")


def expand(text: str, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The text with the values of its variables, and the names of these variables.

    As in a shell, the default is for a variable that is missing or empty.

    :raises ValueError: a variable is missing, or `${` begins no variable. The message has no value.
    """
    names: list[str] = []

    def value(match: re.Match[str]) -> str:
        escaped, name, default, end = match.groups()
        if escaped:
            return "${"
        if not end:
            raise ValueError(
                "`${` begins an environment variable, but what follows is neither ${NAME} nor ${NAME:-default}, where "
                "the default has braces only in pairs, and no variable; write $${ for the two characters themselves"
            )
        names.append(name)
        setting = environ.get(name)
        if default is not None:
            return setting or default
        if setting is None:
            raise ValueError(
                f"the environment variable {name} is missing; set it where Airflow's scheduler, DAG processor and "
                f"workers run, or give a default: ${{{name}:-default}}"
            )
        return setting

    return _PLACE.sub(value, text), tuple(names)


def is_one_variable(text: str) -> bool:
    """Return True if the text is one variable and nothing else."""
    return re.fullmatch(rf"\$\{{{NAME}(:-{_DEFAULT})?\}}", text) is not None


_STRING, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
QUOTES = "\"'"
# Levels that are no danger to the stack, and values that take no time.
_SMALL = 5000


# `{topic}/{yyyy}` is a pattern; as YAML it would be a mapping without values.
_PATTERN = re.compile(r"""\{[^{}\s"',]+\}""")


class _Strict:
    """Leaves times as text, and refuses duplicate keys, of which PyYAML silently takes the last."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - overrides the loaders'
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self: Any, node: yaml.MappingNode, deep: bool = False) -> Any:
        keys = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                line = key_node.start_mark.line + 1
                what = "a merge key (`<<`) is not supported; write its keys here, or give a whole value as `*name`"
                raise FaultyYamlError([Fault(f"line {line}: {what}", line=line)])
            key = self.construct_object(key_node, deep=True)
            if key in keys:
                line = key_node.start_mark.line + 1
                raise FaultyYamlError([Fault(f"line {line}: key `{key_name(key)}` is given twice", line=line)])
            keys.add(key)
        return super().construct_mapping(node, deep)  # type: ignore[misc] # of the loader


class _Python(_Strict, yaml.SafeLoader):
    """PyYAML's own parser."""


# Absent if PyYAML was built without libyaml.
_Libyaml: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Fast(_Strict, _Libyaml):  # type: ignore[misc] # chosen above
    """Ten times as fast, but a deep tree overflows its stack and ends the process."""


def _loader(text: str) -> Any:
    deepest = text.count("[") + text.count("{") + 2 * max(map(len, text.splitlines()), default=0)
    if max(deepest, len(text) // 20) >= _SMALL:
        _require_small(text)
    return _Fast(text)


def _require_small(text: str) -> None:
    """Look at a tree without building it.

    :raises ConfigError: it is too deep for the loader's stack, or has too many values.
    """
    depth = count = 0
    for event in yaml.parse(text, _Libyaml):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        count += isinstance(event, yaml.NodeEvent)
        # What is a little too deep gets a message with its keys, by `require_bounded`.
        if depth > DEEPEST + 2:
            line = event.start_mark.line + 1 if event.start_mark else "?"
            raise ConfigError(f"line {line}: expected at most {DEEPEST} levels of lists and mappings")
        if count > MOST_VALUES:
            raise ConfigError(f"expected at most {MOST_VALUES:,} values")


class Read(NamedTuple):
    """The values of a YAML. `variables`: the environment variables in each value, by its keys (`source.topics.0`)."""

    content: Any
    variables: dict[str, tuple[str, ...]]


def read_yaml(text: str, environ: Mapping[str, str]) -> Read:
    """Read YAML text.

    An unquoted value with variables has the type that its text would have in the YAML, but is never null when it is
    empty; one variable alone may be a list or a mapping in brackets. Quoted values and patterns (`{topic}`) are text.

    :raises ConfigError: the text is not YAML, has a key twice, or names a missing variable. Has no values.
    """
    try:
        loader = _loader(text)
        try:
            node = loader.get_single_node()
            variables: dict[str, tuple[str, ...]] = {}
            if node is not None and "${" in text:
                node = _Expansion(loader, environ, variables).expanded(node, ())
            return Read(None if node is None else loader.construct_document(node), variables)
        finally:
            loader.dispose()
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - a value can fail in any way, and one file must not stop the others
        hint = " (inside [] or {}, a value with ${NAME} needs quotes)" if "${" in text else ""
        mark = getattr(error, "problem_mark", None)
        fault = Fault(f"not YAML: {_problem(error)}{hint}", line=mark.line + 1 if mark else None)
        raise FaultyYamlError([fault]) from None


class _Expansion:
    """Replaces the variables of a tree of nodes."""

    def __init__(self, loader: Any, environ: Mapping[str, str], variables: dict[str, tuple[str, ...]]) -> None:
        self._loader, self._environ, self._variables = loader, environ, variables
        # An alias is the same node at a second place.
        self._done: dict[int, Any] = {}
        self._faults: list[Fault] = []

    def expanded(self, node: yaml.Node, keys: tuple[str, ...]) -> yaml.Node:
        """The tree without variables.

        :raises ConfigError: names everything that is wrong.
        """
        new = self._new(node, keys)
        if self._faults:
            raise FaultyYamlError(self._faults)
        return new

    def _new(self, node: yaml.Node, keys: tuple[str, ...]) -> yaml.Node:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, keys) if "${" in node.value else node
        if id(node) not in self._done:
            self._done[id(node)] = node
            node.value = list(self._items(node, keys))
        return node

    def _items(self, node: yaml.Node, keys: tuple[str, ...]) -> Iterator[Any]:
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                yield self._new(item, (*keys, str(number)))
            return
        for key, item in node.value:
            name = key_name(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            if "${" in str(key.value):
                self._fault((*keys, name), key, "a key cannot have environment variables, only a value can")
            yield key, self._new(item, (*keys, name))

    def _scalar(self, node: yaml.ScalarNode, keys: tuple[str, ...]) -> yaml.Node:
        try:
            text, names = expand(node.value, self._environ)
        except ValueError as error:
            self._fault(keys, node, str(error))
            return node
        if names:
            self._variables[".".join(keys)] = names
        plain = not node.style and node.tag != "!"
        if plain and text[:1] in ("[", "{") and is_one_variable(node.value) and not _PATTERN.match(text):
            return self._tree(text, names, node, keys)
        tag = node.tag
        if plain:
            tag = self._loader.resolve(yaml.ScalarNode, text, (True, False)) if text else _STRING
        return yaml.ScalarNode(tag, text, node.start_mark, node.end_mark, style=node.style)

    def _tree(self, text: str, names: tuple[str, ...], node: yaml.ScalarNode, keys: tuple[str, ...]) -> yaml.Node:
        """A variable's own list or mapping; `${` in it is text."""
        try:
            tree = yaml.compose(text, _Python)
        except yaml.YAMLError as error:
            tree = None
            self._fault(keys, node, f'{names[0]} is not YAML: {_problem(error)} (quote "${{NAME}}" if it is text)')
        return node if tree is None else tree

    def _fault(self, keys: tuple[str, ...], node: yaml.Node, what: str) -> None:
        line = node.start_mark.line + 1
        self._faults.append(Fault(f"`{'.'.join(keys)}` (line {line}): {what}", ".".join(keys), line))


_QUOTED = re.compile(r"""(['"])(.*?)\1""", re.DOTALL)
# The words and signs of YAML itself.
_OF_YAML = re.compile(r"<[a-z ]+>|[][{},:?-]")


def _problem(error: Exception) -> str:
    """The place and kind of a YAML error, without the text that it quotes: that may be a password."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or "a value cannot be read"
    return where + _QUOTED.sub(lambda match: match[0] if _OF_YAML.fullmatch(match[2]) else "…", problem)


def located(text: str, fault: Fault) -> Fault:
    """Return a fault with its line: that of its last key that the YAML has. What may be a secret is not shown."""
    line = fault.line
    if line is None and fault.keys:
        try:
            line = _line_of(yaml.compose(text, _Python), fault.keys.split("."))
        except (yaml.YAMLError, RecursionError):
            line = None
    lines = text.splitlines()
    return fault._replace(line=line, shown=_shown(lines[line - 1], fault) if line and line <= len(lines) else "")


def _line_of(node: yaml.Node | None, keys: list[str]) -> int | None:
    line = None
    while node is not None and keys:
        if isinstance(node, yaml.SequenceNode) and keys[0].isdigit() and int(keys[0]) < len(node.value):
            node, keys = node.value[int(keys[0])], keys[1:]
            line = node.start_mark.line + 1
            continue
        below = _below(node, keys) if isinstance(node, yaml.MappingNode) else None
        if below is None:
            break
        key, node, keys = below
        line = key.start_mark.line + 1
    return line


def _below(node: yaml.MappingNode, keys: list[str]) -> tuple[yaml.Node, yaml.Node, list[str]] | None:
    """Return the key with the longest name that begins these keys, and what is below it: a name may have dots."""
    named = [(key_name(key.value), key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
    for length in range(len(keys), 0, -1):
        for name, key, value in named:
            if name == ".".join(keys[:length]):
                return key, value, keys[length:]
    return None


_LINE = re.compile(r"(?P<key>\s*(?:- +)?[\w.\-]{1,80}:|\s*-)(?P<space>\s*)(?P<value>.*)")


def _shown(line: str, fault: Fault) -> str:
    """Return a line without its value, unless the fault shows the value."""
    match = _LINE.fullmatch(line.rstrip())
    if not match:
        return "…"
    value = match["value"].partition(" #")[0].strip()
    is_known = not value or f"found {value.strip(QUOTES)!r}" in fault.text
    return f"{match['key']}{match['space']}{value if is_known else '…'}".rstrip()
