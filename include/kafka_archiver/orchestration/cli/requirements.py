"""`airflow archive requirements`: the exact versions of what Spark's executors need."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.terminal.options import OUTPUT
from kafka_archiver.orchestration.terminal.output import report_errors, show
from kafka_archiver.orchestration.terminal.stdout import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.requirements import Requirement

REQUIREMENTS = ActionCommand(
    name="requirements",
    help="The Python packages that Spark's executors need, with their versions here",
    description="""\
Print a requirements file for pip: what the Python of Spark's executors needs, and in cluster mode that of the driver,
in the versions that are installed here. Other versions may write other bytes: such a job fails before it reads.
Extras of kafka-archiver that are not installed here are left out, and so are versions that executors cannot use; stderr
names both. The package itself is not in it: each job brings it. Nothing is asked or written.

json and yaml: {python, spark (null: no pyspark is installed here), packages: {name: version}, left_out: [extra]}.""",
    func=lazy_load_command(f"{__name__}.print_requirements"),
    args=(OUTPUT,),
)
_OWN = "kafka-archiver"


@report_errors
def print_requirements(args: Namespace) -> None:
    """Print the versions as pip reads them."""
    packages, left_out = executor_packages()
    python, spark = f"{sys.version_info.major}.{sys.version_info.minor}", _version("pyspark")
    if args.output != "table":
        show(args.output, {"python": python, "spark": spark, "packages": packages, "left_out": left_out}, [])
        return
    say(f"# For the executors of a Spark {spark or ''} with Python {python}, which brings pyspark itself.")
    for name, version in packages.items():
        say(f"{name}=={version}")
    for extra in left_out:
        print(f"the extra {extra} is not installed here, so executors lack it, too", file=sys.stderr)
    for need in _unfit(_needs(_OWN, {"executor"})):
        print(
            f"{need.name} {_version(need.name)} is installed here, but executors need {need.name}{need.specifier}: "
            "left out; if an archive needs it (pandas: source.reader: spark), install that here first",
            file=sys.stderr,
        )


def executor_packages() -> tuple[dict[str, str], list[str]]:
    """Return the packages with their versions, by name, and the extras that are left out.

    :raises ConfigError: the package runs from a folder, without a distribution that says what it needs.
    """
    if _version(_OWN) is None:
        raise ConfigError(f"the distribution {_OWN} is not installed here: pip install '{_OWN}[airflow]'")
    extras: list[str] = []
    left_out: list[str] = []
    for extra in sorted(extra for need in _needs(_OWN, {"executor"}) if need.name == _OWN for extra in need.extras):
        (extras if _is_installed(_needs(_OWN, {extra})) else left_out).append(extra)
    packages: dict[str, str] = {}
    unfit = {need.name for need in _unfit(_needs(_OWN, {*extras, "executor"}))}
    _add(packages, (need for need in _needs(_OWN, {*extras, "executor"}) if need.name not in unfit))
    return dict(sorted(packages.items())), left_out


def _add(packages: dict[str, str], needs: Iterable[Requirement]) -> None:
    """Add these requirements that are installed, and what they need in turn."""
    from packaging.utils import canonicalize_name

    for need in needs:
        name, version = canonicalize_name(need.name), _version(need.name)
        if name == _OWN or version is None or (name in packages and not need.extras):
            continue
        packages[name] = version
        _add(packages, _needs(need.name, need.extras))


def _needs(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    """Yield what an installed distribution needs on this machine, with these extras of it."""
    from packaging.requirements import Requirement

    for line in distribution(name).requires or ():
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield need


def _unfit(needs: Iterable[Requirement]) -> Iterator[Requirement]:
    """Yield those of which another version is installed: pip does not look at an extra that nobody asked for."""
    for need in needs:
        version = _version(need.name)
        if version is not None and not need.specifier.contains(version, prereleases=True):
            yield need


def _is_installed(needs: Iterable[Requirement]) -> bool:
    return all(_version(need.name) is not None for need in needs)


def _version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None
