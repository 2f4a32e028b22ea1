"""Everything that can go wrong, as one tree.

MirrorError                       retriable = False
 +- ConfigError                   one key: value, reason, remedy; raised together as ConfigErrors
 +- MissingPart                   a program or file this machine lacks: names what to install
 +- KafkaError                    cluster alias, what was being done
 |   +- TransportError            connect, read, write, deadline            retriable
 |   +- LocalProtocolError        we built or asked something illegal       never retried: a bug
 |   +- RemoteProtocolError       the broker sent nonsense                  retriable: reconnect
 |   +- AuthenticationError                                                 not retriable
 |   +- UnsupportedVersionError   no version of a request in common         retriable: upgrades
 |   +- LeaseError                this process may not write any more        not retriable
 |   +- BrokerError               an error code from a broker; retriable as the code table says
 |       +- DeniedError           a permission is missing: which, for whom, and how to grant it
 +- BatchError                    record-batch bytes that cannot be read or written
 +- DataLossError                 records that can no longer be copied: partition, range, why
 +- RefusedError                  records or requests the target will never accept: ends the task
 +- StoppingError                 what was about to start does not: this process stops

Every class pickles, because errors cross Spark's process boundary.
"""

from __future__ import annotations

from collections.abc import Sequence


class MirrorError(Exception):
    """Base of all errors that the program raises on purpose."""

    retriable = False


class ConfigError(MirrorError):
    """One setting that cannot be used.

    Operator action: change `key` in `where` as described in `remedy`.
    """

    def __init__(
        self, key: str, value: object, reason: str, remedy: str = "", where: str = ""
    ) -> None:
        super().__init__(key, value, reason, remedy, where)
        self.key = key
        self.value = value
        self.reason = reason
        self.remedy = remedy
        self.where = where

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        subject = self.key if self.value is None else f"{self.key}={self.value}"
        text = f"{place}{subject}: {self.reason}" if subject else f"{place}{self.reason}"
        return f"{text}; {self.remedy}" if self.remedy else text


class ConfigErrors(MirrorError):
    """All settings that cannot be used, found in one go."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        super().__init__(tuple(errors))
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


class StoppingError(MirrorError):
    """What was about to start does not, because this process stops: nothing has failed."""


class MissingPart(MirrorError):
    """Something this machine lacks. Operator action: the message names what to install."""


class AddressTaken(MirrorError):
    """Another process uses an address of this machine now; starting again later may help."""


class KafkaError(MirrorError):
    """A request to a Kafka cluster failed; the message names the cluster and the request."""


class TransportError(KafkaError):
    """The connection could not be made, broke, or a deadline passed."""

    retriable = True


class LocalProtocolError(KafkaError):
    """We built or asked for something the protocol forbids: a bug of ours."""


class RemoteProtocolError(KafkaError):
    """The broker sent bytes that do not follow the protocol."""

    retriable = True


class AuthenticationError(KafkaError):
    """The broker rejected our credentials. Operator action: check the sasl.* and ssl.* settings."""


class UnsupportedVersionError(KafkaError):
    """A broker is too old or too new: no version of a request is spoken by both sides.

    Operator action: upgrade the brokers, or sparkmirror, as the message asks.
    """

    retriable = True


class LeaseError(KafkaError):
    """Another worker may lead by now, so this one must not write. Operator action: none."""


class BrokerError(KafkaError):
    """The broker returned an error code."""

    def __init__(self, message: str, code: int, retriable: bool) -> None:
        super().__init__(message, code, retriable)
        self.code = code
        self.retriable = retriable

    def __str__(self) -> str:
        return str(self.args[0])


class DeniedError(BrokerError):
    """The cluster denied the request.

    `message` names what was tried and which permission is missing for whom, `consequence` what
    happens without it. Operator action: run `grant`, or do without what needs it.
    """

    def __init__(self, message: str, code: int, grant: str, consequence: str = "") -> None:
        super().__init__(message, code, retriable=False)
        self.args = (message, code, grant, consequence)
        self.grant = grant
        self.consequence = consequence

    def with_consequence(self, consequence: str) -> DeniedError:
        """The same error, with what happens as long as it lasts."""
        return DeniedError(str(self.args[0]), self.code, self.grant, consequence)

    def __str__(self) -> str:
        text = f"{self.args[0]}; {self.consequence}" if self.consequence else str(self.args[0])
        return f"{text}; to allow it: {self.grant}"


def describe_error(error: MirrorError, consequence: str = "", *, if_denied: str = "") -> str:
    """The error and its consequence; the command that grants a permission comes last.

    `if_denied` replaces the consequence when a permission is missing.
    """
    if isinstance(error, DeniedError) and (if_denied or consequence):
        return str(error.with_consequence(if_denied or consequence))
    return f"{error}; {consequence}" if consequence else str(error)


class BatchError(MirrorError):
    """Record-batch bytes that cannot be read, or records that cannot be written as a batch."""


class DataLossError(MirrorError):
    """Records that can no longer be copied, when the settings forbid continuing without them."""


class RefusedError(MirrorError):
    """The target will never accept what we send, so the task ends.

    Operator action: the message names the records, the topic, and the broker's reason.
    """
