"""The reasons why a client cannot connect: librdkafka reports them only to `error_cb`, and retries for ever."""

from confluent_kafka import KafkaError

from kafka_archiver.kafka.failures import translate
from kafka_archiver.messages.errors import ArchiverError, PermanentError

# Seconds without an answer until a refusal counts: one broker may refuse, or a token be late, while other brokers
# answer.
PATIENCE = 5.0


class Complaints:
    """A client's `error_cb`, which remembers the last error. A refusal is only replaced by another refusal.

    :param brokers: the bootstrap servers.
    """

    def __init__(self, brokers: str) -> None:
        self.brokers = brokers
        self._last: KafkaError | None = None
        self._refused = False

    def __call__(self, error: KafkaError) -> None:
        """Take an error from librdkafka, which calls this while the client is polled."""
        refused = isinstance(translate(error, "", ""), PermanentError)
        # _ALL_BROKERS_DOWN is a summary error; ignore it.
        if error.code() != KafkaError._ALL_BROKERS_DOWN and refused >= self._refused:
            self._last, self._refused = error, refused

    def forget(self) -> None:
        """Forget the error: the brokers have answered."""
        self._last, self._refused = None, False

    def refusal(self, silence: float) -> KafkaError | None:
        """The refusal that makes further waiting useless; None while an answer may still come.

        :param silence: seconds without an answer.
        """
        return self._last if self._refused and silence > PATIENCE else None

    def translate(self, error: KafkaError, what: str) -> ArchiverError:
        """The error to raise. If there was no answer, the remembered error says more than `error`.

        :param what: the failed action, for example "read the watermarks of orders[3]".
        """
        silent = error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
        return translate(self._last if silent and self._last else error, what, self.brokers)
