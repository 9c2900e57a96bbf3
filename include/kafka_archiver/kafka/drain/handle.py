"""A client of librdkafka through its C interface: properties, errors, and its end."""

import ctypes
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka.drain.library import ErrorCallback, Library

# What confluent_kafka itself does with these, its C interface does not.
_PYTHON_ALONE = ("plugin.library.paths", "default.topic.config")
_TOKEN_SOURCE = "sasl.oauthbearer.metadata.authentication.type"
_TEXT = 512


def is_possible(config: Mapping[str, object]) -> bool:
    """Return True if librdkafka alone can act on all properties; False if some need Python code of confluent_kafka."""
    if any(name in config for name in _PYTHON_ALONE) or config.get(_TOKEN_SOURCE) == "aws_iam":
        return False
    return all(isinstance(value, str | int) for value in config.values())


class Handle:
    """A client of one kind. `client`: librdkafka's; 0: it is closed. `fatal`: the error after which it is of no use.

    :param error_cb: takes librdkafka's errors, while the client is polled.
    :param prepare: changes the configuration before the client is made of it.
    :raises KafkaException: librdkafka refuses the properties.
    """

    def __init__(
        self,
        library: Library,
        kind: int,
        config: Mapping[str, str | int],
        error_cb: Callable[[KafkaError], None],
        prepare: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._kafka, self._error_cb, self._kind = library.kafka, error_cb, kind
        self.fatal: KafkaError | None = None
        # librdkafka calls it for as long as the client lives.
        self._callback = ErrorCallback(self._complain)
        self.client = self._new(config, prepare)

    def _new(self, config: Mapping[str, str | int], prepare: Callable[[int], None]) -> int:
        text = ctypes.create_string_buffer(_TEXT)
        conf = self._kafka.conf_new()
        try:
            for name, value in config.items():
                # As confluent_kafka: str() of True is True, which librdkafka takes.
                if self._kafka.conf_set(conf, name.encode(), str(value).encode(), text, _TEXT):
                    raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text_of(text.value)))
            self._kafka.conf_set_error_cb(conf, self._callback)
            prepare(conf)
            client: int | None = self._kafka.new(self._kind, conf, text, _TEXT)
            if client is None:
                reason = f"Failed to create a client: {text_of(text.value)}"
                raise KafkaException(KafkaError(self._kafka.last_error(), reason))
        except BaseException:
            self._kafka.conf_destroy(conf)
            raise
        # The configuration is the client's.
        return client

    def _complain(self, client: int, code: int, reason: bytes | None, _: object) -> None:
        if code == KafkaError._FATAL:
            text = ctypes.create_string_buffer(_TEXT)
            code = self._kafka.fatal_error(client, text, _TEXT)
            self.fatal = KafkaError(code, text_of(text.value), fatal=True)
        else:
            self._error_cb(KafkaError(code, text_of(reason or b"")))


def text_of(text: bytes) -> str:
    """Return one of librdkafka's texts."""
    return text.decode(errors="replace")
