"""The settings that a plan of an archive freezes."""

import sys
from collections.abc import Mapping
from pathlib import Path

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.layouts.registry import resolve as resolve_layout
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.transforms import Hash, Transform, fingerprint
from kafka_archiver.planning.time_settings import with_zone_data
from kafka_archiver.records.formats import resolve


def settings_of(archive: Archive, keys: Mapping[str, str] | None = None) -> Settings:
    """Return the archive's settings, complete with the defaults of its format, and what its transforms depend on.

    :param keys: the secret keys of transforms by name; None: leave their fingerprints out, which only plans need.
    :raises ConfigError: the format does not exist or does not have the codec, the content or an option; or Python does
        not find the code of a mapper. The message names the archive's file.
    """
    try:
        settings = resolve_layout(with_zone_data(resolve(archive.settings, archive.has_columns)))
        if settings.transform is None:
            return settings
        return settings.model_copy(update={"transform": frozen_transform(settings.transform, archive.file, keys)})
    except ConfigError as error:
        raise ConfigError(f"{archive.file}: {error}" if archive.file else str(error)) from None


def frozen_transform(transform: Transform, file: str, keys: Mapping[str, str] | None) -> Transform:
    """Return the transforms with the digests of their code and the fingerprints of their keys, as they are now.

    :param file: the YAML. :param keys: as of `settings_of`.
    :raises ConfigError: Python does not find the code, or there is no such key.
    """
    mapper, sql = transform.mapper, transform.sql
    if mapper or (sql and sql.function):
        # Imported late: Airflow parses DAGs all day.
        from kafka_archiver.records.pipeline.transform.code import digest_of, require_function

        folder = str(Path(file).absolute().parent)
        if file and folder not in sys.path:
            sys.path.append(folder)
        if mapper:
            require_function("mapper", mapper.function)
            mapper = mapper.model_copy(update={"digest": digest_of(mapper.function, mapper.modules)})
        if sql and sql.function:
            require_function("function", sql.function)
            sql = sql.model_copy(update={"digest": digest_of(sql.function, sql.modules)})
    steps = transform.steps
    if keys is not None:
        steps = tuple(_with_key(step, keys) if isinstance(step, Hash) else step for step in steps)
    return transform.model_copy(update={"sql": sql, "mapper": mapper, "steps": steps})


def _with_key(step: Hash, keys: Mapping[str, str]) -> Hash:
    if step.key not in keys:
        raise ConfigError(f"transform.steps: hash: there is no key {step.key!r}")
    return step.model_copy(update={"fingerprint": fingerprint(keys[step.key])})
