"""A class of master keys: a service has them, by one letter."""

from collections.abc import Mapping
from typing import ClassVar, Self

from kafka_archiver.encryption.masters import LocalMaster
from kafka_archiver.messages.errors import ConfigError


class LetterMaster(LocalMaster):
    opens_without_key: ClassVar[bool] = False

    @classmethod
    def parse(cls, text: str, where: str, options: Mapping[str, str]) -> Self:
        if len(text) != 1:
            raise ConfigError(f"{where}: expected one letter")
        return cls(text.encode() * 32)
