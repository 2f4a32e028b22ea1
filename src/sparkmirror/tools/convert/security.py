"""How a cluster is reached: `tls` and `authentication` of the resource as settings of a client.

Mirrors: the settings that Strimzi's operator makes from them. Certificates and passwords stay in
their Secrets, which the pod mounts.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.config.security.sasl import (
    ENDPOINT_URL,
    JAAS,
    KAFKA,
    LOGIN_HANDLER,
    MECHANISM,
    OAUTHBEARER,
    PLAIN,
)
from sparkmirror.tools.convert.ledger import Node
from sparkmirror.tools.convert.settings import (
    SECRET_KEY,
    SECRET_NAME,
    FileSetting,
    FileSettings,
    Values,
    quoted,
)

PROTOCOL = "security.protocol"
TRUST, KEYS = "ssl.truststore", "ssl.keystore"
# The key of a cluster's CA certificate in the Secret that Strimzi creates.
CA_CERTIFICATE = "ca.crt"
RESTART = "run kubectl rollout restart after you renew a certificate"
CREDENTIALS = "sasl.oauthbearer.client.credentials.client"
OAUTH_MODULE = f"{KAFKA}oauthbearer.OAuthBearerLoginModule"
OAUTH_HANDLER = f"{KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler"
OAUTH_TEXTS = {"clientId": f"{CREDENTIALS}.id", "scope": "sasl.oauthbearer.scope"}
OAUTH_SECONDS = {
    "connectTimeoutSeconds": "sasl.login.connect.timeout.ms",
    "readTimeoutSeconds": "sasl.login.read.timeout.ms",
}
# Strimzi uses these settings of `type: custom`, and drops the others.
CUSTOM_PREFIXES = ("sasl.", f"{KEYS}.")


def read_security(cluster: Node, values: Values, label: str) -> FileSettings:
    """The settings for one cluster; `label` is its alias."""
    tls, login = cluster.get("tls"), cluster.get("authentication")
    settings = {} if tls is None else _read_trust(tls, values)
    kind = "" if login is None else _read_type(login)
    if login is not None and kind:
        settings |= LOGINS[kind](login, values, label)
    is_login = kind in SASL_TYPES or (kind == CUSTOM and _is_sasl(login))
    protocol = f"{'SASL_' if is_login else ''}{'PLAINTEXT' if tls is None else 'SSL'}"
    if kind == TLS and tls is None and login is not None:
        values.ledger.note(
            login.path,
            "has no effect without tls: Strimzi connects without encryption, and so does the file",
            f"add tls to the cluster, or set {PROTOCOL}=SSL in the written file",
        )
    return {PROTOCOL: FileSetting(protocol, (tls or cluster).path), **settings}


def _read_type(login: Node) -> str:
    found = login.need("type", f"use one of {', '.join(LOGINS)}")
    kind = "" if found is None else found.text()
    if found is not None and kind not in LOGINS:
        found.wrong("is not a known type of authentication", f"use one of {', '.join(LOGINS)}")
        login.use()
        return ""
    return kind


def _is_sasl(login: Node | None) -> bool:
    found = None if login is None else login.get("sasl")
    return found is not None and found.flag()


# -- certificates ----------------------------------------------------------------------------------


def _read_trust(tls: Node, values: Values) -> FileSettings:
    tls_fields = tls.members()
    if not tls_fields:
        tls.use()
    certificates = tls_fields.get("trustedCertificates")
    if certificates is None:
        return {}
    files = _read_certificates(certificates, values)
    if not files:
        return {}
    kind = {f"{TRUST}.type": FileSetting("PEM", certificates.path)}
    if len(files) == 1:
        # A file is reread when it changes; the value of a placeholder is not.
        path = values.secrets.path(*files[0])
        return kind | {f"{TRUST}.location": FileSetting(path, certificates.path)}
    values.ledger.note(
        certificates.path,
        "sparkmirror reads several certificates once, at the start",
        RESTART,
    )
    text = "\n".join(values.secrets.placeholder(*file) for file in files)
    return kind | {f"{TRUST}.certificates": FileSetting(text, certificates.path)}


def _read_certificates(certificates: Node, values: Values) -> list[tuple[str, str]]:
    """The Secrets and the keys in them."""
    elements = certificates.elements()
    if not elements:
        certificates.use()
    return [_read_certificate(element, values) for element in elements]


def _read_certificate(node: Node, values: Values) -> tuple[str, str]:
    pattern = node.get("pattern")
    if pattern is None:
        return values.secret_key(node, "certificate")
    name = node.need("secretName", "name a Secret")
    secret = name.matching(SECRET_NAME, "the name of a Secret") if name else ""
    return secret, _matched(pattern)


def _matched(pattern: Node) -> str:
    """The key that a pattern such as *.crt means: the command cannot read the Secret."""
    text = pattern.text()
    if SECRET_KEY.fullmatch(text):
        return text
    if not fnmatch.fnmatchcase(CA_CERTIFICATE, text):
        reason = f"does not match {CA_CERTIFICATE}, and the command cannot read the Secret"
        pattern.wrong(reason, "name the key itself with certificate instead of pattern")
        return CA_CERTIFICATE
    pattern.ledger.note(
        pattern.path,
        f"sparkmirror cannot list a Secret: of the matching keys it trusts only {CA_CERTIFICATE}",
        "name each further key with certificate in trustedCertificates",
    )
    return CA_CERTIFICATE


# -- logins ----------------------------------------------------------------------------------------


def _read_tls(login: Node, values: Values, _label: str) -> FileSettings:
    both = login.need("certificateAndKey", "name a Secret, its certificate and its key")
    if both is None:
        return {}
    secret, certificate = values.secret_key(both, "certificate")
    _, key = values.secret_key(both, "key")
    values.ledger.note(
        both.path, "sparkmirror reads certificate and key once, at the start", RESTART
    )
    found = {f"{KEYS}.certificate.chain": certificate, f"{KEYS}.key": key}
    return {f"{KEYS}.type": FileSetting("PEM", both.path)} | {
        name: FileSetting(values.secrets.placeholder(secret, each), both.path)
        for name, each in found.items()
    }


def _with_password(mechanism: str, module: str) -> Callable[[Node, Values, str], FileSettings]:
    def read(login: Node, values: Values, _label: str) -> FileSettings:
        user = login.need("username", "name the user")
        name = "" if user is None else user.text()
        secret = login.need("passwordSecret", "name a Secret and its key")
        password = values.secrets.placeholder(*values.secret_key(secret, "password"))
        options = {"username": name, "password": password}
        return _jaas(f"{KAFKA}{module}", mechanism, options, login)

    return read


def _jaas(module: str, mechanism: str, options: Mapping[str, str], login: Node) -> FileSettings:
    words = [module, "required", *(f"{name}={quoted(text)}" for name, text in options.items())]
    return {
        MECHANISM: FileSetting(mechanism, login.at("type")),
        JAAS: FileSetting(" ".join(words) + ";", login.path),
    }


def _read_custom(login: Node, values: Values, label: str) -> FileSettings:
    _is_sasl(login)
    found = values.config(login.get("config"), label)
    taken = {key: setting for key, setting in found.items() if key.startswith(CUSTOM_PREFIXES)}
    for key in found.keys() - taken.keys():
        values.ledger.note(
            found[key].path,
            f"Strimzi takes only {' and '.join(CUSTOM_PREFIXES)} here, and drops it",
            "set it in the config of the cluster",
        )
    return taken


def _read_oauth(login: Node, values: Values, _label: str) -> FileSettings:
    fields = login.members()
    settings = _oauth_endpoint(login, values)
    for name, key in OAUTH_TEXTS.items():
        if name in fields:
            settings[key] = FileSetting(fields[name].text(), fields[name].path)
    for name, key in OAUTH_SECONDS.items():
        if name in fields:
            seconds = fields[name].number()
            settings[key] = FileSetting(str(seconds * 1000), fields[name].path)
    if pause := fields.get("httpRetryPauseMs"):
        settings["sasl.login.retry.backoff.ms"] = FileSetting(str(pause.number()), pause.path)
    if secret := fields.get("clientSecret"):
        text = values.secrets.placeholder(*values.secret_key(secret, "key"))
        settings[f"{CREDENTIALS}.secret"] = FileSetting(text, secret.path)
    options = _oauth_tls(fields, values)
    return {
        LOGIN_HANDLER: FileSetting(OAUTH_HANDLER, login.at("type")),
        **_jaas(OAUTH_MODULE, OAUTHBEARER, options, login),
        **settings,
    }


def _oauth_endpoint(login: Node, values: Values) -> FileSettings:
    """The source of tokens: a mounted Secret, a file, or the server."""
    token, file, server = map(login.get, ("accessToken", "accessTokenLocation", "tokenEndpointUri"))
    if token is not None:
        url = f"file://{values.secrets.path(*values.secret_key(token, 'key'))}"
        return {ENDPOINT_URL: FileSetting(url, token.path)}
    if file is not None:
        values.ledger.note(
            file.path,
            "the path exists in Strimzi's pod, which runs as a different service account",
            "mount the token in kubernetes.yaml at this path",
        )
        return {ENDPOINT_URL: FileSetting(f"file://{file.text()}", file.path)}
    if server is not None:
        return {ENDPOINT_URL: FileSetting(server.text(), server.path)}
    login.ledger.error(
        login.path,
        None,
        "names neither a token nor a token server",
        "set tokenEndpointUri, accessToken or accessTokenLocation",
    )
    return {}


def _oauth_tls(fields: Mapping[str, Node], values: Values) -> dict[str, str]:
    """Options of the login module for connections to the token server."""
    options: dict[str, str] = {}
    certificates = fields.get("tlsTrustedCertificates")
    files = [] if certificates is None else _read_certificates(certificates, values)
    if certificates is not None and files:
        path = values.secrets.path(*files[0])
        options |= {f"{TRUST}.type": "PEM", f"{TRUST}.location": path}
        _note_further(certificates, files)
    unchecked = fields.get("disableTlsHostnameVerification")
    if unchecked is not None and unchecked.flag():
        options["ssl.endpoint.identification.algorithm"] = ""
    return options


def _note_further(certificates: Node, files: Sequence[tuple[str, str]]) -> None:
    if len(files) > 1:
        certificates.ledger.note(
            f"{certificates.path}[1]",
            "only the first certificate is trusted for the token server",
            "put all of them into one key of one Secret",
        )


TLS, CUSTOM = "tls", "custom"
# Types of `authentication`, each with its reader.
LOGINS: Mapping[str, Callable[[Node, Values, str], FileSettings]] = {
    TLS: _read_tls,
    "scram-sha-256": _with_password("SCRAM-SHA-256", "scram.ScramLoginModule"),
    "scram-sha-512": _with_password("SCRAM-SHA-512", "scram.ScramLoginModule"),
    "plain": _with_password(PLAIN, "plain.PlainLoginModule"),
    "oauth": _read_oauth,
    CUSTOM: _read_custom,
}
SASL_TYPES = ("scram-sha-256", "scram-sha-512", "plain", "oauth")
