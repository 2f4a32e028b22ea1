"""The security keys of every Kafka client, with Kafka 4.3's types and defaults.

They are allowed at the top of an mm2 file, under a cluster, or under one client of a cluster.
"""

from __future__ import annotations

from typing import Any

from sparkmirror.config.config_def import Definition, Importance, Key, KeySupport, Type

STRING, PASSWORD, LIST, CLASS = Type.STRING, Type.PASSWORD, Type.LIST, Type.CLASS
INT, SHORT, LONG, DOUBLE, BOOLEAN = Type.INT, Type.SHORT, Type.LONG, Type.DOUBLE, Type.BOOLEAN
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
JWT = "org.apache.kafka.common.security.oauthbearer.DefaultJwt"

SECURITY_PROTOCOL = Key(
    name="security.protocol",
    type=STRING,
    default="PLAINTEXT",
    importance=MEDIUM,
    one_of=PROTOCOLS,
    ignore_case=True,
    convert=str.upper,
    doc="How clients connect to brokers: unencrypted, over TLS, with a SASL login, or both.",
)

# name, importance, type, default, words
_ROWS: tuple[tuple[str, Importance, Type, Any, str], ...] = (
    ("ssl.protocol", MEDIUM, STRING, "TLSv1.3", "Preferred TLS version."),
    ("ssl.provider", MEDIUM, STRING, None, "Security provider of the JVM."),
    ("ssl.cipher.suites", LOW, LIST, (), "Cipher suites that may be used; empty means all."),
    (
        "ssl.enabled.protocols",
        MEDIUM,
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        "TLS versions that may be used.",
    ),
    ("ssl.keystore.type", MEDIUM, STRING, "JKS", "Format of the key store: JKS, PKCS12 or PEM."),
    (
        "ssl.keystore.location",
        HIGH,
        STRING,
        None,
        "File with the client's own key and certificate.",
    ),
    ("ssl.keystore.password", HIGH, PASSWORD, None, "Password of the key store file."),
    ("ssl.key.password", HIGH, PASSWORD, None, "Password of the private key in the key store."),
    ("ssl.keystore.key", HIGH, PASSWORD, None, "The client's private key itself, in PEM."),
    ("ssl.keystore.certificate.chain", HIGH, PASSWORD, None, "The client's certificates, in PEM."),
    ("ssl.truststore.certificates", HIGH, PASSWORD, None, "Certificates to trust, in PEM."),
    (
        "ssl.truststore.type",
        MEDIUM,
        STRING,
        "JKS",
        "Format of the trust store: JKS, PKCS12 or PEM.",
    ),
    ("ssl.truststore.location", HIGH, STRING, None, "File with the certificates to trust."),
    ("ssl.truststore.password", HIGH, PASSWORD, None, "Password of the trust store file."),
    ("ssl.keymanager.algorithm", LOW, STRING, "SunX509", "Key manager of the JVM."),
    ("ssl.trustmanager.algorithm", LOW, STRING, "PKIX", "Trust manager of the JVM."),
    (
        "ssl.endpoint.identification.algorithm",
        LOW,
        STRING,
        "https",
        "`https` checks that the broker's certificate carries its host name; empty does not.",
    ),
    ("ssl.secure.random.implementation", LOW, STRING, None, "Random number source of the JVM."),
    ("ssl.engine.factory.class", LOW, CLASS, None, "Java class that creates TLS engines."),
    (
        "sasl.kerberos.service.name",
        MEDIUM,
        STRING,
        None,
        "Kerberos service name of the brokers.",
    ),
    ("sasl.kerberos.kinit.cmd", LOW, STRING, "/usr/bin/kinit", "Path of the kinit program."),
    (
        "sasl.kerberos.ticket.renew.window.factor",
        LOW,
        DOUBLE,
        0.8,
        "Part of a ticket's life after which it is renewed.",
    ),
    ("sasl.kerberos.ticket.renew.jitter", LOW, DOUBLE, 0.05, "Random part of the renewal time."),
    (
        "sasl.kerberos.min.time.before.relogin",
        LOW,
        LONG,
        60000,
        "Shortest time between logins, in ms.",
    ),
    (
        "sasl.login.refresh.window.factor",
        LOW,
        DOUBLE,
        0.8,
        "Part of a token's life before a refresh.",
    ),
    ("sasl.login.refresh.window.jitter", LOW, DOUBLE, 0.05, "Random part of the refresh time."),
    ("sasl.login.refresh.min.period.seconds", LOW, SHORT, 60, "Shortest time between refreshes."),
    ("sasl.login.refresh.buffer.seconds", LOW, SHORT, 300, "Time to keep before a token expires."),
    ("sasl.mechanism", MEDIUM, STRING, "GSSAPI", "SASL mechanism, such as PLAIN or SCRAM-SHA-512."),
    ("sasl.jaas.config", MEDIUM, PASSWORD, None, "Login module line with user name and password."),
    (
        "sasl.client.callback.handler.class",
        MEDIUM,
        CLASS,
        None,
        "Java class that handles SASL callbacks.",
    ),
    (
        "sasl.login.callback.handler.class",
        MEDIUM,
        CLASS,
        None,
        "Java class that handles login callbacks.",
    ),
    ("sasl.login.class", MEDIUM, CLASS, None, "Java class that logs in."),
    ("sasl.login.connect.timeout.ms", LOW, INT, None, "Time to connect to the token server."),
    ("sasl.login.read.timeout.ms", LOW, INT, None, "Time to read from the token server."),
    ("sasl.login.retry.backoff.max.ms", LOW, LONG, 10000, "Longest wait between login attempts."),
    ("sasl.login.retry.backoff.ms", LOW, LONG, 100, "First wait between login attempts."),
    (
        "sasl.oauthbearer.jwt.retriever.class",
        MEDIUM,
        CLASS,
        f"{JWT}Retriever",
        "Class that gets tokens.",
    ),
    (
        "sasl.oauthbearer.jwt.validator.class",
        MEDIUM,
        CLASS,
        f"{JWT}Validator",
        "Class that checks tokens.",
    ),
    ("sasl.oauthbearer.scope", MEDIUM, STRING, None, "Requested scope."),
    ("sasl.oauthbearer.client.credentials.client.id", MEDIUM, STRING, None, "OAuth client id."),
    (
        "sasl.oauthbearer.client.credentials.client.secret",
        MEDIUM,
        PASSWORD,
        None,
        "OAuth client secret.",
    ),
    (
        "sasl.oauthbearer.assertion.algorithm",
        MEDIUM,
        STRING,
        "RS256",
        "Signing algorithm of assertions.",
    ),
    ("sasl.oauthbearer.assertion.claim.aud", MEDIUM, STRING, None, "Audience of assertions."),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", LOW, INT, 300, "Life of an assertion."),
    ("sasl.oauthbearer.assertion.claim.iss", MEDIUM, STRING, None, "Issuer of assertions."),
    (
        "sasl.oauthbearer.assertion.claim.jti.include",
        MEDIUM,
        BOOLEAN,
        False,
        "Whether assertions have an id.",
    ),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", LOW, INT, 60, "Age of an assertion's start."),
    ("sasl.oauthbearer.assertion.claim.sub", MEDIUM, STRING, None, "Subject of assertions."),
    ("sasl.oauthbearer.assertion.file", MEDIUM, STRING, None, "File with a ready assertion."),
    (
        "sasl.oauthbearer.assertion.private.key.file",
        MEDIUM,
        STRING,
        None,
        "Key that signs assertions.",
    ),
    (
        "sasl.oauthbearer.assertion.private.key.passphrase",
        MEDIUM,
        PASSWORD,
        None,
        "Passphrase of the key that signs assertions.",
    ),
    (
        "sasl.oauthbearer.assertion.template.file",
        MEDIUM,
        STRING,
        None,
        "File with claims and headers.",
    ),
    ("sasl.oauthbearer.scope.claim.name", LOW, STRING, "scope", "Claim that holds the scope."),
    ("sasl.oauthbearer.sub.claim.name", LOW, STRING, "sub", "Claim that holds the subject."),
    ("sasl.oauthbearer.token.endpoint.url", MEDIUM, STRING, None, "Address of the token server."),
    ("sasl.oauthbearer.jwks.endpoint.url", MEDIUM, STRING, None, "Address of the signing keys."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LOW, LONG, 3600000, "Time to keep signing keys."),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LOW,
        LONG,
        10000,
        "Longest wait between attempts to get signing keys.",
    ),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LOW,
        LONG,
        100,
        "First wait between attempts to get signing keys.",
    ),
    ("sasl.oauthbearer.clock.skew.seconds", LOW, INT, 30, "Difference of clocks to tolerate."),
    ("sasl.oauthbearer.expected.audience", HIGH, LIST, (), "Audiences that a token may have."),
    ("sasl.oauthbearer.expected.issuer", HIGH, STRING, None, "Issuer that a token must have."),
    ("sasl.oauthbearer.header.urlencode", LOW, BOOLEAN, False, "URL-encode id and secret."),
)

# Settings that mean something only to Java.
_NO_JVM = {
    "ssl.provider": "it names a part of the JVM, but TLS uses OpenSSL here",
    "ssl.keymanager.algorithm": "it names a part of the JVM, but TLS uses OpenSSL here",
    "ssl.trustmanager.algorithm": "it names a part of the JVM, but TLS uses OpenSSL here",
    "ssl.secure.random.implementation": "it names a part of the JVM, but TLS uses OpenSSL here",
    "ssl.engine.factory.class": "there is no JVM that could load it; use key and trust stores",
    "sasl.login.class": "there is no JVM that could load it; sasl.jaas.config configures the login",
    "sasl.kerberos.kinit.cmd": "the Kerberos library gets and renews tickets itself",
    "sasl.kerberos.ticket.renew.window.factor": "the Kerberos library renews tickets itself",
    "sasl.kerberos.ticket.renew.jitter": "the Kerberos library renews tickets itself",
    "sasl.kerberos.min.time.before.relogin": "the Kerberos library renews tickets itself",
    "sasl.oauthbearer.jwt.validator.class": "brokers check tokens",
    "sasl.oauthbearer.scope.claim.name": "brokers check tokens",
    "sasl.oauthbearer.jwks.endpoint.url": "brokers check tokens",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "brokers check tokens",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "brokers check tokens",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "brokers check tokens",
    "sasl.oauthbearer.clock.skew.seconds": "brokers check tokens",
    "sasl.oauthbearer.expected.audience": "brokers check tokens",
    "sasl.oauthbearer.expected.issuer": "brokers check tokens",
}


def _key(name: str, importance: Importance, type_: Type, default: Any, doc: str) -> Key:
    reason = _NO_JVM.get(name, "")
    status = KeySupport.EXPLAINED if reason else KeySupport.HONOURED
    return Key(
        name=name,
        importance=importance,
        type=type_,
        default=default,
        doc=doc,
        status=status,
        reason=reason,
    )


SECURITY_KEYS = Definition(SECURITY_PROTOCOL, *(_key(*row) for row in _ROWS))
