"""The interface of a layout."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.values.documents import Value


class Layout(Protocol):
    """Says where the objects of an archive are: the form of their keys.

    Another distribution adds one by an entry point of the group `kafka_archiver.layouts`. Records are filed by the
    tokens of the form, so a record's path depends on the record and the plan alone. A token of a new kind is a
    :class:`~kafka_archiver.model.layouts.tokens.Own`.
    """

    @property
    def name(self) -> str:
        """The value of `store.layout`, or of its key `name`, in the YAML."""

    @property
    def options(self) -> type[Value]:
        """The pydantic model of the mapping `store.layout` without `name`, best a `YamlValue`; `Value` for a layout
        without options.

        If it is an `options.ClockOptions`, plans freeze the data of its time zone and the names of its locale.
        """

    def form(self, options: Any, /) -> PathForm:
        """The form of the keys. `options`: a value of the model `options`.

        :raises ValueError: options do not go together; the message says what was expected.
        """


class NamedLayout(NamedTuple):
    """A layout of this package. `form`: as of `Layout`."""

    name: str
    options: type[Value]
    form: Callable[[Any], PathForm]
