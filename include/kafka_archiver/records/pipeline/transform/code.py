"""The code of a mapper: found, digested and loaded, in the planner and in Spark's tasks."""

import ast
import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from typing import Any

from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.model.transforms import Mapper


def digest_of(function: str, modules: Sequence[str]) -> str:
    """SHA-256 of the source of a function's module and of further modules, packages with all that they have.

    Nothing is run but the `__init__` of packages above a module.

    :raises ConfigError: Python does not find a module, or not its source.
    """
    digest = hashlib.sha256()
    for module in (function.partition(":")[0], *modules):
        for name, source in _sources(module):
            digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()


def _sources(module: str) -> Iterator[tuple[str, bytes]]:
    spec = _spec(module)
    if spec.submodule_search_locations is not None:
        import pkgutil

        below = pkgutil.iter_modules(spec.submodule_search_locations)
        for name in sorted(info.name for info in below):
            yield from _sources(f"{module}.{name}")
    if spec.loader is None:
        return
    try:
        source = spec.loader.get_source(module)  # type: ignore[attr-defined]
    except (AttributeError, ImportError, OSError, SyntaxError) as error:
        raise ConfigError(f"transform: the source of module {module} cannot be read: {error}") from None
    if source is None:
        raise ConfigError(f"transform: module {module} has no source, so nobody could tell whether it changed")
    # A checkout on another machine may have other ends of lines.
    yield module, source.replace("\r\n", "\n").replace("\r", "\n").encode()


def require_function(key: str, function: str) -> None:
    """Check by its source that a module has a function. Nothing is run: executors may have more than this machine.

    :raises ConfigError: it has no such name, or is not Python.
    """
    module, _, name = function.partition(":")
    source = dict(_sources(module)).get(module, b"").decode(errors="replace")
    place = f"transform.{key}: module {module} ({_spec(module).origin or 'a folder without __init__.py'})"
    try:
        names = list(dict.fromkeys(_names(ast.parse(source))))
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{place} is not Python: {error}") from None
    if name not in names and not _HIDDEN.search(source):
        has = ", ".join(names[:20]) or "nothing"
        raise ConfigError(f"{place} has no function {name!r}; found {has}. Correct the name, or add the function")


# How a module gets names that its statements do not show.
_HIDDEN = re.compile(r"import \*|__getattr__|globals\(|setattr\(|exec\(|\bglobal\b")


def _names(node: ast.AST) -> Iterator[str]:
    """The names that the statements of a module give."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
            continue
        if isinstance(child, ast.alias):
            yield (child.asname or child.name).partition(".")[0]
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        yield from _names(child)


def _spec(module: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise _not_found(module, str(error)) from None
    except Exception as error:  # noqa: BLE001 - the __init__ of a package above it may raise anything
        raise _not_found(module, f"{type(error).__name__}: {error}") from None
    if spec is None:
        raise _not_found(module, "")
    return spec


def _not_found(module: str, why: str) -> ConfigError:
    return ConfigError(
        f"transform: Python does not find module {module}{why and f' ({why})'}; expected {module}.py beside the "
        "YAML, from where Spark gets it, or the module installed where Airflow plans and on all of Spark's executors; "
        f"searched {', '.join(filter(None, sys.path))}"
    )


def load(mapper: Mapper) -> Callable[..., Any]:
    """The function of a mapper of a plan.

    :raises ConfigError: there is no such function.
    :raises PermanentError: its code is not the code that the plan was made with.
    """
    require_code("mapper", mapper.function, mapper.modules, mapper.digest)
    return load_function(mapper.function)


def require_code(key: str, function: str, modules: Sequence[str], digest: str) -> None:
    """:raises PermanentError: the code of a function is not the code that its plan was made with."""
    present = digest_of(function, modules)
    if digest and present != digest:
        raise PermanentError(
            f"transform.{key}: the code of {', '.join((function.partition(':')[0], *modules))} has changed since the "
            f"run was planned (SHA-256 {present[:12]}…, the plan's is {digest[:12]}…), so the run could write other "
            "bytes than before. Put the code back as it was, or plan the run anew with the code as it is now, which "
            "`policies.changed_code: plan_anew` does by itself"
        )


@cache
def load_function(function: str) -> Callable[..., Any]:
    """The function `module:name`.

    :raises ConfigError: there is no such function.
    """
    module, _, name = function.partition(":")
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"transform: module {module} cannot be imported: {one_line_of(error)}") from error
    try:
        attribute = getattr(imported, name)
    except AttributeError:
        raise ConfigError(f"transform: module {module} has no function {name!r}") from None
    if not callable(attribute):
        raise ConfigError(f"transform: {function} is no function, found {type(attribute).__name__}")
    loaded: Callable[..., Any] = attribute
    return loaded


def one_line_of(error: BaseException) -> str:
    """An error's type and text in one line, the same in every process."""
    import traceback

    # A syntax error comes with its lines of code, other errors with notes behind them.
    first = traceback.format_exception_only(error)[0]
    text = f"SyntaxError: {error}" if isinstance(error, SyntaxError) else first
    # Half of a surrogate pair, which JSON allows, is no UTF-8: a dead letter could not say it.
    shown = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    return re.sub(r"0x[0-9a-fA-F]{6,}", "0x…", shown)[:1000]
