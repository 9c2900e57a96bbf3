"""The settings that a plan of an archive freezes."""

from kafka_archiver.config import Archive
from kafka_archiver.errors import ConfigError
from kafka_archiver.formats import resolve
from kafka_archiver.plan import Settings


def settings_of(archive: Archive) -> Settings:
    """The archive's settings, complete with the defaults of its format.

    :raises ConfigError: the format does not exist or does not have the codec, the content or an option. The message
        names the archive's file.
    """
    try:
        return resolve(archive.settings, archive.has_columns)
    except ConfigError as error:
        raise ConfigError(f"{archive.file}: {error}" if archive.file else str(error)) from None
