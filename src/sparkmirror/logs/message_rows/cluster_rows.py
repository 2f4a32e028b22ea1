"""Messages about connections to clusters: network, TLS, logins."""

from __future__ import annotations

from sparkmirror.logs.message_types import Message, MessageLine, message

MESSAGES = (
    message(
        "wire.client.reachability",
        "cluster '<alias>' cannot be reached (<address: reason>); check <key>",
        "no bootstrap server of the cluster accepts a connection",
        "check the key that the line names, and the brokers",
    ),
    message(
        "wire.client.reachability",
        "cluster '<alias>': <address> responds, but <the advertised addresses> cannot be reached "
        "from here",
        "a bootstrap server only returns the brokers' addresses, and those cannot be reached",
        "set `advertised.listeners` of the brokers to addresses that this machine can reach and "
        "resolve",
    ),
    Message(
        (
            MessageLine(
                "<cluster> has not responded since <time>: nothing is copied from it or to it",
                "wire.net.outages",
            ),
            MessageLine(
                "<cluster> does not respond: no byte from <address> for <n> s; <n> partitions wait",
                "spark.copy.partition_problems",
            ),
        ),
        "the brokers or the network are frozen: connections are accepted, but no response comes. "
        "The worker logs the first line once, each task the second. A connection is replaced after "
        "`request.timeout.ms` of silence",
        "check the named brokers; when it is over, the log says `responds again` and `no longer "
        "wait`",
    ),
    message(
        "wire.net.outages",
        "<cluster> responds again, after <n> s",
        "the outage is over, and copying continues",
        "nothing",
    ),
    message(
        "wire.tls.tls_context",
        "the certificate in <file> <expires> on <date>: replace it",
        "brokers will reject our certificate from that day on",
        "replace the file; it is read again without a restart",
    ),
    message(
        "wire.tls.tls_context",
        "<error>; the certificates read before stay in use",
        "a key store or trust store has changed and cannot be read",
        "correct the file before the previous certificate expires",
    ),
    message(
        "wire.sasl.renewing",
        "<error>; the last credential is used for another <n> s",
        "a new token or ticket was not issued",
        "check the service that issues it; when the last credential ends, logins fail",
    ),
    message(
        "wire.tls.tls_context",
        "ssl.cipher.suites: OpenSSL has no <names>",
        "the other suites of the list are used",
        "remove the names, or use those of OpenSSL",
    ),
)
