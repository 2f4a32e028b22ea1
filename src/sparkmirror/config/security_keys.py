"""The security keys that every Kafka client takes, with Kafka 4.3's types and defaults.

They may stand at the top of an mm2 file, under a cluster, or under one client of a cluster.
"""

from __future__ import annotations

from typing import Any

from sparkmirror.config.keys import Definition, Importance, Key, Type

STRING, PASSWORD, LIST, CLASS = Type.STRING, Type.PASSWORD, Type.LIST, Type.CLASS
INT, SHORT, LONG, DOUBLE, BOOLEAN = Type.INT, Type.SHORT, Type.LONG, Type.DOUBLE, Type.BOOLEAN
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
JWT = "org.apache.kafka.common.security.oauthbearer.DefaultJwt"

SECURITY_PROTOCOL = Key(
    name="security.protocol",
    type=STRING,
    default="PLAINTEXT",
    importance=Importance.MEDIUM,
    one_of=PROTOCOLS,
    ignore_case=True,
    doc="How clients talk to brokers: in the clear, over TLS, with a SASL login, or both.",
)

# name, type, default, words
_ROWS: tuple[tuple[str, Type, Any, str], ...] = (
    ("ssl.protocol", STRING, "TLSv1.3", "TLS version to ask for first."),
    ("ssl.provider", STRING, None, "Security provider of the JVM."),
    ("ssl.cipher.suites", LIST, (), "Cipher suites that may be used; empty means all."),
    ("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "TLS versions that may be used."),
    ("ssl.keystore.type", STRING, "JKS", "Format of the key store: JKS, PKCS12 or PEM."),
    ("ssl.keystore.location", STRING, None, "File with the client's own key and certificate."),
    ("ssl.keystore.password", PASSWORD, None, "Password of the key store file."),
    ("ssl.key.password", PASSWORD, None, "Password of the private key in the key store."),
    ("ssl.keystore.key", PASSWORD, None, "The client's private key itself, in PEM."),
    ("ssl.keystore.certificate.chain", PASSWORD, None, "The client's certificates, in PEM."),
    ("ssl.truststore.certificates", PASSWORD, None, "Certificates to trust, in PEM."),
    ("ssl.truststore.type", STRING, "JKS", "Format of the trust store: JKS, PKCS12 or PEM."),
    ("ssl.truststore.location", STRING, None, "File with the certificates to trust."),
    ("ssl.truststore.password", PASSWORD, None, "Password of the trust store file."),
    ("ssl.keymanager.algorithm", STRING, "SunX509", "Key manager of the JVM."),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", "Trust manager of the JVM."),
    (
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "`https` checks that the broker's certificate carries its host name; empty does not.",
    ),
    ("ssl.secure.random.implementation", STRING, None, "Random number source of the JVM."),
    ("ssl.engine.factory.class", CLASS, None, "Java class that makes TLS engines."),
    ("sasl.kerberos.service.name", STRING, None, "Kerberos principal name that brokers run as."),
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", "Path of the kinit program."),
    (
        "sasl.kerberos.ticket.renew.window.factor",
        DOUBLE,
        0.8,
        "Part of a ticket's life after which it is renewed.",
    ),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, "Random part of the renewal time."),
    ("sasl.kerberos.min.time.before.relogin", LONG, 60000, "Shortest time between logins, in ms."),
    ("sasl.login.refresh.window.factor", DOUBLE, 0.8, "Part of a token's life before a refresh."),
    ("sasl.login.refresh.window.jitter", DOUBLE, 0.05, "Random part of the refresh time."),
    ("sasl.login.refresh.min.period.seconds", SHORT, 60, "Shortest time between refreshes."),
    ("sasl.login.refresh.buffer.seconds", SHORT, 300, "Time to keep before a token expires."),
    ("sasl.mechanism", STRING, "GSSAPI", "SASL mechanism, such as PLAIN or SCRAM-SHA-512."),
    ("sasl.jaas.config", PASSWORD, None, "Login module line with user name and password."),
    ("sasl.client.callback.handler.class", CLASS, None, "Java class that answers SASL questions."),
    ("sasl.login.callback.handler.class", CLASS, None, "Java class that answers login questions."),
    ("sasl.login.class", CLASS, None, "Java class that logs in."),
    ("sasl.login.connect.timeout.ms", INT, None, "Time to connect to the token server."),
    ("sasl.login.read.timeout.ms", INT, None, "Time to read from the token server."),
    ("sasl.login.retry.backoff.max.ms", LONG, 10000, "Longest wait between login attempts."),
    ("sasl.login.retry.backoff.ms", LONG, 100, "First wait between login attempts."),
    ("sasl.oauthbearer.jwt.retriever.class", CLASS, f"{JWT}Retriever", "Class that gets tokens."),
    ("sasl.oauthbearer.jwt.validator.class", CLASS, f"{JWT}Validator", "Class that checks tokens."),
    ("sasl.oauthbearer.scope", STRING, None, "Scope to ask for."),
    ("sasl.oauthbearer.client.credentials.client.id", STRING, None, "OAuth client id."),
    ("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, "OAuth client secret."),
    ("sasl.oauthbearer.assertion.algorithm", STRING, "RS256", "Signing algorithm of assertions."),
    ("sasl.oauthbearer.assertion.claim.aud", STRING, None, "Audience of assertions."),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, "Life of an assertion."),
    ("sasl.oauthbearer.assertion.claim.iss", STRING, None, "Issuer of assertions."),
    ("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, "Give assertions an id."),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, "Age of an assertion's start."),
    ("sasl.oauthbearer.assertion.claim.sub", STRING, None, "Subject of assertions."),
    ("sasl.oauthbearer.assertion.file", STRING, None, "File with a ready assertion."),
    ("sasl.oauthbearer.assertion.private.key.file", STRING, None, "Key that signs assertions."),
    (
        "sasl.oauthbearer.assertion.private.key.passphrase",
        PASSWORD,
        None,
        "Passphrase of the key that signs assertions.",
    ),
    ("sasl.oauthbearer.assertion.template.file", STRING, None, "File with claims and headers."),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", "Claim that holds the scope."),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", "Claim that holds the subject."),
    ("sasl.oauthbearer.token.endpoint.url", STRING, None, "Address that gives tokens."),
    ("sasl.oauthbearer.jwks.endpoint.url", STRING, None, "Address of the signing keys."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3600000, "Time to keep signing keys."),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10000,
        "Longest wait between attempts to get signing keys.",
    ),
    (
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        "First wait between attempts to get signing keys.",
    ),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, "Difference of clocks to tolerate."),
    ("sasl.oauthbearer.expected.audience", LIST, (), "Audiences that a token may have."),
    ("sasl.oauthbearer.expected.issuer", STRING, None, "Issuer that a token must have."),
    ("sasl.oauthbearer.header.urlencode", BOOLEAN, False, "URL-encode id and secret."),
)

SECURITY_KEYS = Definition(
    SECURITY_PROTOCOL,
    *(Key(name=name, type=type_, default=default, doc=doc) for name, type_, default, doc in _ROWS),
)
