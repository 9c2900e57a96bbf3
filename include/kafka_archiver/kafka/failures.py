"""Kafka's errors as messages for operators, permanent or transient; also those that come only to a callback."""

import re

from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.messages.errors import ArchiverError, PermanentError, TransientError
from kafka_archiver.messages.foreign_text import foreign

_PERMANENT = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: "could not {what}: it does not exist; create it or correct source.topics",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the credentials may not {what}; grant them Describe and Read on the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the credentials may not {what}; grant them Read on the group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the credentials may not {what}; grant them Describe on the cluster",
    KafkaError.SASL_AUTHENTICATION_FAILED: "the brokers refused the credentials while trying to {what}; "
    "correct the Kafka connection",
    KafkaError._AUTHENTICATION: "the brokers refused the credentials while trying to {what}; "
    "correct the Kafka connection",
    KafkaError._SSL: "TLS failed while trying to {what}; correct security.protocol and the ssl.* properties",
    KafkaError.UNKNOWN_MEMBER_ID: "could not {what}: the group has live members; stop the consumers of this group",
    KafkaError.NON_EMPTY_GROUP: "could not {what}: the group has live members; stop the consumers of this group",
    KafkaError._BAD_COMPRESSION: "could not {what}: a compressed record batch cannot be decompressed. Its checksum is "
    "right, so its producer wrote it damaged, or it decompresses to more than a client takes (2 GiB)",
    KafkaError._INVALID_ARG: "the client refused to {what}; correct the properties of the Kafka connection",
}

# What a client says of a topic or partition that is not in the metadata of the broker that it asked.
UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token: "
# The connection broke before the broker saw a password; librdkafka reports an authentication error.
_UNHEARD = "mechanism handshake failed: Local:"
# Permanent errors of OAuth 2.0 (RFC 6749, 5.2).
_REFUSED = re.compile(r'"error"\s*:\s*"(invalid_|unauthorized_client|unsupported_|access_denied)')
# Seconds without an answer until a refusal counts: one broker may refuse, or a token be late, while other brokers
# answer.
PATIENCE = 5.0


def translate(error: KafkaError, what: str, brokers: str) -> ArchiverError:
    """The error to raise for Kafka's.

    :param what: the failed action, for example "read the watermarks of orders[3]".
    :param brokers: the bootstrap servers.
    """
    code = error.code()
    if code == KafkaError._AUTHENTICATION and error.str().startswith(_NO_TOKEN):
        return _no_token(error.str().removeprefix(_NO_TOKEN), what, brokers)
    if code == KafkaError._AUTHENTICATION and _UNHEARD in error.str():
        code = KafkaError._TRANSPORT
    if code in _PERMANENT:
        return PermanentError(f"{brokers}: {_PERMANENT[code].format(what=what)} ({foreign(error.str())})")
    if code in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
        return TransientError(
            f"no answer from the Kafka brokers at {brokers} while trying to {what}; check that they run and that "
            f"this machine reaches them ({foreign(error.str())})"
        )
    return TransientError(f"{brokers}: could not {what}: {error.name()} {foreign(error.str())}")


def code_of(error: ArchiverError) -> int | None:
    """Return Kafka's code of an error that `translate` has made; None: it has another cause."""
    cause = error.__cause__
    return cause.args[0].code() if isinstance(cause, KafkaException) else None


def _no_token(answer: str, what: str, brokers: str) -> ArchiverError:
    message = f"{brokers}: the identity provider gave no token to {what}: {foreign(' '.join(answer.split()))}"
    if _REFUSED.search(answer):
        return PermanentError(f"{message}; correct the client id, secret or scope in the Kafka connection")
    return TransientError(f"{message}; check that it runs, `sasl.oauthbearer.token.endpoint.url` and https.ca.location")


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
