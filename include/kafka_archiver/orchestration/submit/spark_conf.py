"""Spark's settings of an archive, as a file of Java properties that only its owner can read. Pure.

They are not arguments: every user of the machine sees arguments, and Airflow logs them.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from kafka_archiver.messages.secrets import SECRET_NAME, SHOWN

# At INFO, Spark logs a hundred lines that hide the job's own.
DEFAULTS = {"spark.log.level": "WARN"}
_REDACTION = "spark.redaction.regex"
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def spark_conf(settings: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """Return Spark's settings for a job: our defaults, the archive's, and the pattern of those that Spark must hide."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
    return {**DEFAULTS, **texts, _REDACTION: _redaction(texts)}


def _redaction(settings: Mapping[str, str]) -> str:
    """Return the pattern of what Spark hides in UI, event log and log: names of secrets, and what Airflow hides too."""
    own = [settings[_REDACTION]] if _REDACTION in settings else []
    # Spark also shows Hadoop's and the metrics' settings without their prefix.
    bare = [
        re.escape(re.sub(r"^spark\.(hadoop\.|metrics\.conf\.)?", "", name))
        for name in settings
        if f"spark.conf.{name}" not in SHOWN
    ]
    patterns = [rf"^(spark\.)?(hadoop\.|metrics\.conf\.)?({'|'.join(bare)})$"] if bare else []
    return "|".join([*own, f"(?i:{SECRET_NAME.pattern})", *patterns])


def properties_text(properties: Mapping[str, str]) -> str:
    """Return a file of Java properties in ASCII, a line for each. Java and Spark drop white space around a value."""
    return "".join(f"{_escaped(name, ' :=#!')}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(text: str, signs: str = "") -> str:
    return "".join(_ESCAPES.get(c) or (f"\\{c}" if c in signs else c if " " <= c <= "~" else _unicode(c)) for c in text)


def _unicode(character: str) -> str:
    """Escape a character as Java does: its UTF-16 code units."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))


def local_daemon(conf: Mapping[str, str], master: str, package: Path) -> dict[str, str]:
    """Return Spark's settings of a Python daemon that starts faster, for executors on this machine.

    Elsewhere the package arrives only with the first task. The settings in `conf` win.

    :param package: the zip of build_package.
    """
    if not master.startswith("local") or "spark.python.daemon.module" in conf:
        return {}
    path = ":".join(filter(None, [str(package), conf.get("spark.executorEnv.PYTHONPATH")]))
    return {"spark.python.daemon.module": "kafka_archiver.spark.daemon", "spark.executorEnv.PYTHONPATH": path}


def java_settings(reader: str, environment: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """Return environment variables for spark-submit: the JVMs' compiler, and the directory of temporary files.

    Using only the C1 compiler saves 3 of 6 CPU seconds of each start, and costs nothing where records do not pass
    through the JVM; Spark's own reader needs C2. Spark's local directories are in `temporary` too, unless configured
    otherwise. The user's options, in the same variable, in Spark's settings or in the archive's `spark.conf`, come
    later on the command line and win.
    """
    quick, place = "-XX:TieredStopAtLevel=1", f'"-Djava.io.tmpdir={temporary}"'
    # The launcher only builds the command line, so it always gets C1.
    options = {"SPARK_LAUNCHER_OPTS": quick, "SPARK_SUBMIT_OPTS": place if reader == "spark" else f"{quick} {place}"}
    own = {name: f"{value} {environment.get(name, '')}".rstrip() for name, value in options.items()}
    return {**own, "TMPDIR": str(temporary)}
