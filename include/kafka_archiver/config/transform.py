"""`transform`: what becomes of records between decoding and filing."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from kafka_archiver.config.schema_files import read_schema
from kafka_archiver.config.section import Section
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.transforms import (
    By,
    Concurrency,
    Function,
    Mapper,
    Module,
    Sql,
    Step,
    Transform,
    is_step,
    step_names,
    step_type,
)


def _columns(value: Any, info: ValidationInfo) -> Any:
    if value is None or isinstance(value, Schema):
        return value
    return read_schema(value, "JSON", (info.context or {}).get("folder"))


class MapperSection(Section):
    """A Python function. `schema`: columns of the values that it returns, or a JSON Schema of them."""

    model_config = ConfigDict(serialize_by_alias=True)

    function: Function
    by: By = "record"
    modules: tuple[Module, ...] = ()
    schema_: Annotated[Schema | None, BeforeValidator(_columns), Field(alias="schema")] = None
    concurrency: Concurrency = 16


def _mapper(value: Any) -> Any:
    return {"function": value} if isinstance(value, str) else value


def _step(value: Any) -> Any:
    """`{mask: value.card}` as a plan has it: with the step's name and all of its settings."""
    if not isinstance(value, dict) or "step" in value:
        # Another process has it as a plan has it; what is no mapping is refused with the names of the steps.
        return value
    if len(value) != 1 or not is_step(name := str(next(iter(value)))):
        raise ValueError(f"one of {', '.join(step_names())} with its settings, for example `mask: value.card`")
    kind, settings = step_type(name), value[name]
    # Instead of a mapping of settings: `mask: value.card`, `drop: [value.a]`, `rename: {a: b}`.
    main = kind.MAIN
    whole = isinstance(settings, dict) and (name != "rename" or set(settings) == {"names"})
    settings = {} if settings is None else dict(settings) if whole else {main: settings}
    if isinstance(settings.get(main), str) and main == "fields":
        settings[main] = [settings[main]]
    if "fingerprint" in settings:
        raise ValueError("no `fingerprint`; the plan has it")
    return {"step": name, **settings}


class FunctionSection(Section):
    """A PySpark function. `modules`: further modules whose code it depends on."""

    function: Function
    modules: tuple[Module, ...] = ()


class TransformSection(Section):
    """The changes of records, in this order: `where` and `select`, or `function`; `mapper`; the `steps`."""

    where: Annotated[str, Field(min_length=1)] | None = None
    select: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    function: Annotated[FunctionSection | None, BeforeValidator(_mapper)] = None
    mapper: Annotated[MapperSection | None, BeforeValidator(_mapper)] = None
    steps: tuple[Annotated[Step, BeforeValidator(_step)], ...] = ()

    @property
    def transform(self) -> Transform | None:
        """Return it as a plan has it, before the code's digest and the keys' fingerprints are added; None: nothing is
        done.
        """
        mapper_settings = self.mapper
        mapper = None
        if mapper_settings:
            mapper = Mapper(
                function=mapper_settings.function,
                by=mapper_settings.by,
                modules=mapper_settings.modules,
                columns=mapper_settings.schema_,
                concurrency=mapper_settings.concurrency,
            )
        transform = Transform(sql=self._sql, mapper=mapper, steps=self.steps)
        return transform if transform != Transform() else None

    def timed(self, time: str) -> Transform | None:
        """The same with the SQL of records' times, if it is not empty."""
        if not time:
            return self.transform
        transform = self.transform or Transform()
        return transform.model_copy(update={"sql": (transform.sql or Sql()).model_copy(update={"time": time})})

    @property
    def _sql(self) -> Sql | None:
        if self.function:
            return Sql(function=self.function.function, modules=self.function.modules)
        return Sql(where=self.where, select=self.select) if self.where or self.select else None

    @model_validator(mode="after")
    def _is_one_of_sparks(self) -> Self:
        if self.function and (self.where or self.select):
            raise ValueError("`function`, or `where` and `select`; a function says both in PySpark")
        return self
