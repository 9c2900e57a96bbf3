"""Aiven's templates of names, `{{topic}}/{{timestamp:unit=yyyy}}/…`, as `store.layout` and `store.name`. Pure."""

import re
from typing import Any, NamedTuple

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*(?::\s*(\w+)\s*=\s*(\w+)\s*)?\}\}")
# yyyy was written YYYY once, and means the same.
_UNITS = {"yyyy": "yyyy", "YYYY": "yyyy", "MM": "MM", "dd": "dd", "HH": "HH"}
_NUMBERS = {"partition": ("partition", 10), "start_offset": ("start", 20)}
_ENDING = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]*)+$")


class TemplateKeys(NamedTuple):
    """`store.layout`, `store.name` and `timestamp`; `wrong`: what a person has to decide; empty for nothing."""

    layout: Any
    name: str
    timestamp: dict[str, Any]
    wrong: str


def place_of(template: str, zone: str, by_record: bool) -> TemplateKeys:
    """Return where a template puts objects.

    :param zone: of the parts of times. :param by_record: their time is the record's, not the wall clock's.
    """
    wrong: list[str] = []
    timed = False

    def placeholder(variable: re.Match[str]) -> str:
        nonlocal timed
        name, option, setting = variable.groups()
        if name == "topic" and not option:
            return "{topic}"
        if name in _NUMBERS and option in (None, "padding"):
            number, digits = _NUMBERS[name]
            return "{" + number + (f":{digits}" if (setting or "").lower() == "true" else "") + "}"
        if name == "timestamp" and option == "unit" and setting in _UNITS:
            timed = True
            return "{" + _UNITS[setting] + "}"
        if name == "utc_date" and not option:
            timed = True
            wrong.extend(["{{utc_date}} is a day in UTC, so the zone has to be UTC"] * (zone != "UTC"))
            return "{yyyy-MM-dd}"
        wrong.append(f"{variable[0]} has no equal here: " + _WHY.get(name, "no placeholder of ours says it"))
        return ""

    form = _VARIABLE.sub(placeholder, template.strip())
    folder, _, name = form.rpartition("/")
    name = _ENDING.sub("", name)
    if set(_VARIABLE.sub("", template)) & set("{}"):
        wrong.append(f"a brace of the template {template} belongs to no variable")
    if wrong:
        # No layout has such a name, so the YAML is refused until a person chooses one.
        return TemplateKeys(
            template, "", {}, "; ".join(wrong) + ". No layout is chosen: write store.layout and store.name by hand"
        )
    if re.search(r"\{(yyyy|MM|dd|HH|yyyy-MM-dd)\}", name):
        wrong.append("a name has no times here, only folders have: write store.layout.path and store.name by hand")
    folder = folder.strip("/")
    if folder != form.rpartition("/")[0]:
        wrong.append("folders without a name are left out")
    if not folder:
        folder = "{topic}"
        wrong.append("an object is in a folder of its topic, because each layout has one; the connector's had none")
    timestamp = {"from": "record" if by_record else "wallclock"} if timed else {}
    layout = {"path": folder, **({"timezone": zone} if timed and zone != "UTC" else {})}
    return TemplateKeys(layout, name, timestamp, "; ".join(wrong))


_WHY = {
    "key": "a file for each key has only the last record of it, and the archive has every record",
    "local_date": "it is a day in the time zone of the worker: write {yyyy-MM-dd}, and store.layout.timezone",
}
