"""The layout `path`: any pattern of topic, partition, parts of the time, values and text."""

import re

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import Every, Values
from kafka_archiver.model.layouts.template import parsed


class PathOptions(Every, Values):
    """`path`: the pattern."""

    path: str


class Path:
    """Files records by a pattern of the YAML."""

    name = "path"
    options = PathOptions

    def form(self, options: PathOptions) -> PathForm:
        """:raises ValueError: the pattern has no meaning."""
        columns = re.findall(r"(?:^|/)([^/{}=]+)=", options.path)
        return PathForm(parsed(options.path), columns=tuple(columns), **options.clock(), **options.values())
