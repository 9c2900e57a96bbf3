"""Why a client does not get in: librdkafka says it to a callback alone, and tries again for ever."""

from confluent_kafka import KafkaError

from kafka_archiver.errors import ArchiverError, PermanentError
from kafka_archiver.kafka.failures import translate

# One broker may refuse, or a token be late, while others answer all the same: seconds of silence until a refusal
# counts.
PATIENCE = 5.0


class Complaints:
    """A client's `error_cb`, which remembers the last complaint; a refusal outlives whatever else is complained of.

    :param brokers: the bootstrap servers.
    """

    def __init__(self, brokers: str) -> None:
        self.brokers = brokers
        self._last: KafkaError | None = None
        self._refused = False

    def __call__(self, error: KafkaError) -> None:
        """What librdkafka calls while the client is polled."""
        refused = isinstance(translate(error, "", ""), PermanentError)
        # This one only counts the others.
        if error.code() != KafkaError._ALL_BROKERS_DOWN and refused >= self._refused:
            self._last, self._refused = error, refused

    def forget(self) -> None:
        """The brokers have answered."""
        self._last, self._refused = None, False

    def refusal(self, silence: float) -> KafkaError | None:
        """Why waiting is no use; None while it may be.

        :param silence: seconds without an answer.
        """
        return self._last if self._refused and silence > PATIENCE else None

    def translate(self, error: KafkaError, what: str) -> ArchiverError:
        """The error to raise for Kafka's, which says less than the complaint where there was no answer.

        :param what: what was tried, for example "read the watermarks of orders[3]".
        """
        silent = error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
        return translate(self._last if silent and self._last else error, what, self.brokers)
