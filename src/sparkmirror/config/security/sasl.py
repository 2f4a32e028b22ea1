"""Checks that the `sasl.*` settings fit together: mechanism, login module, options, handlers.

Java loads classes; here every class name selects a built-in function. There is one table per kind;
a class that is not in it is rejected with the list of known ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from sparkmirror.config.config_def import BadValue, Secret
from sparkmirror.config.files.java_options import client_login
from sparkmirror.config.findings import Findings
from sparkmirror.config.security.jaas import LoginModule, parse_jaas

MECHANISM = "sasl.mechanism"
JAAS = "sasl.jaas.config"
LOGIN_HANDLER = "sasl.login.callback.handler.class"
CLIENT_HANDLER = "sasl.client.callback.handler.class"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
ENDPOINT_URL = "sasl.oauthbearer.token.endpoint.url"
# An option in the login module, read by Strimzi's handler.
STRIMZI_ENDPOINT = "oauth.token.endpoint.uri"
SERVICE_NAME = "sasl.kerberos.service.name"

PLAIN, GSSAPI, OAUTHBEARER, MSK_IAM = "PLAIN", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI, MSK_IAM)

KAFKA = "org.apache.kafka.common.security."
# Databricks renames Kafka's classes.
SHADED = "kafkashaded."
# Both modules only provide a user name and a password, for any of these mechanisms.
WITH_PASSWORD = (PLAIN, *SCRAM)
MODULES: Mapping[str, tuple[str, ...]] = {
    f"{KAFKA}plain.PlainLoginModule": WITH_PASSWORD,
    f"{KAFKA}scram.ScramLoginModule": WITH_PASSWORD,
    f"{KAFKA}oauthbearer.OAuthBearerLoginModule": (OAUTHBEARER,),
    "com.sun.security.auth.module.Krb5LoginModule": (GSSAPI,),
    "com.ibm.security.auth.module.Krb5LoginModule": (GSSAPI,),
    "software.amazon.msk.auth.iam.IAMLoginModule": (MSK_IAM,),
}

UNSECURED_HANDLER = (
    f"{KAFKA}oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
)
STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
IAM_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
LOGIN_HANDLERS: Mapping[str, tuple[str, ...]] = {
    f"{KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler": (OAUTHBEARER,),
    f"{KAFKA}oauthbearer.secured.OAuthBearerLoginCallbackHandler": (OAUTHBEARER,),
    UNSECURED_HANDLER: (OAUTHBEARER,),
    STRIMZI_HANDLER: (OAUTHBEARER,),
    IAM_HANDLER: (OAUTHBEARER,),
}
CLIENT_HANDLERS: Mapping[str, tuple[str, ...]] = {
    "software.amazon.msk.auth.iam.IAMClientCallbackHandler": (MSK_IAM,),
    "software.amazon.msk.auth.iam.IAMOAuthBearerSaslClientCallbackHandler": (OAUTHBEARER,),
    f"{KAFKA}oauthbearer.internals.OAuthBearerSaslClientCallbackHandler": (OAUTHBEARER,),
    f"{KAFKA}authenticator.SaslClientCallbackHandler": (*WITH_PASSWORD, GSSAPI),
}
JWT_BEARER = f"{KAFKA}oauthbearer.JwtBearerJwtRetriever"
FILE_RETRIEVER = f"{KAFKA}oauthbearer.FileJwtRetriever"
RETRIEVERS: Mapping[str, tuple[str, ...]] = {
    f"{KAFKA}oauthbearer.DefaultJwtRetriever": (OAUTHBEARER,),
    f"{KAFKA}oauthbearer.ClientCredentialsJwtRetriever": (OAUTHBEARER,),
    FILE_RETRIEVER: (OAUTHBEARER,),
    JWT_BEARER: (OAUTHBEARER,),
}


# Both become part of a host name or principal: other characters could name someone else's.
AWS_REGION = re.compile(r"[a-z]{2,10}(-[a-z0-9]{1,20}){1,5}")
SERVICE = re.compile(r"[\w.-]+", re.ASCII)
STS_REGION = "awsStsRegion"


class SaslProblem(Exception):
    """A setting that cannot be used; `value` is None where none is set, or it is secret."""

    def __init__(self, key: str, value: str | None, reason: str, remedy: str) -> None:
        super().__init__(key, value, reason, remedy)
        self.key = key
        self.value = value
        self.reason = reason
        self.remedy = remedy


def with_java_login(settings: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    """The settings, with the login of KAFKA_OPTS if they need one and have none."""
    needed = settings["security.protocol"].startswith("SASL_") and settings[JAAS] is None
    try:
        found = client_login() if needed else None
    except BadValue as bad:
        findings.error(JAAS, None, bad.reason, bad.remedy)
        found = None
    return {**settings, JAAS: found} if found is not None else dict(settings)


def login_module(settings: Mapping[str, Any]) -> LoginModule:
    """The login module of settings that fit together; all keys are in `settings`.

    Raises:
        SaslProblem: the first setting that does not fit.
    """
    mechanism = settings[MECHANISM]
    if mechanism not in MECHANISMS:
        raise SaslProblem(
            MECHANISM,
            mechanism,
            "unknown mechanism",
            f"use one of {', '.join(MECHANISMS)}",
        )
    module = _parsed(settings[JAAS], mechanism)
    _check_class(JAAS, module.name, mechanism, MODULES)
    _check_class(LOGIN_HANDLER, settings[LOGIN_HANDLER], mechanism, LOGIN_HANDLERS)
    _check_class(CLIENT_HANDLER, settings[CLIENT_HANDLER], mechanism, CLIENT_HANDLERS)
    if mechanism == OAUTHBEARER:
        _check_class(RETRIEVER, settings[RETRIEVER], mechanism, RETRIEVERS)
        _check_url(settings[ENDPOINT_URL])
    _check_options(module, mechanism, settings)
    return module


def check_sasl(settings: Mapping[str, Any], findings: Findings) -> None:
    """Report what is wrong or unsafe with the login of a client."""
    protocol = settings["security.protocol"]
    if not protocol.startswith("SASL_"):
        return
    try:
        login_module(settings)
    except SaslProblem as problem:
        findings.error(problem.key, problem.value, problem.reason, problem.remedy)
        return
    if protocol == "SASL_PLAINTEXT" and settings[MECHANISM] in (PLAIN, OAUTHBEARER):
        findings.warn_key(
            "security.protocol",
            f"with {settings[MECHANISM]}, {protocol} sends the password or token unencrypted over "
            "the network; use SASL_SSL",
        )
    if settings[MECHANISM] == OAUTHBEARER and (settings[ENDPOINT_URL] or "").startswith("http:"):
        findings.warn_key(ENDPOINT_URL, "the secret of the client and the token are not encrypted")


def _parsed(text: Secret | None, mechanism: str) -> LoginModule:
    known = [name for name, fits in MODULES.items() if mechanism in fits]
    if text is None:
        raise SaslProblem(
            JAAS,
            None,
            f"is not set, and {mechanism} needs a login module",
            f"set it to: {known[0]} required ...;",
        )
    try:
        module = parse_jaas(text.reveal())
    except BadValue as bad:
        raise SaslProblem(JAAS, str(text), bad.reason, bad.remedy) from bad
    return LoginModule(module.name.removeprefix(SHADED), module.flag, module.options)


def _check_class(
    key: str, name: str | None, mechanism: str, table: Mapping[str, tuple[str, ...]]
) -> None:
    if name is None or mechanism in table.get(name.removeprefix(SHADED), ()):
        return
    fitting = [each for each, fits in table.items() if mechanism in fits]
    known = name.removeprefix(SHADED) in table
    reason = (
        f"{name} does not go with {MECHANISM}={mechanism}"
        if known
        else (f"unknown class {name}; Java classes cannot be loaded")
    )
    remedy = f"for {mechanism} use {' or '.join(fitting)}" if fitting else "remove it"
    raise SaslProblem(key, None, reason, remedy)


def _check_url(url: str | None) -> None:
    try:
        parts = urlsplit(url or "file:/")
        is_good = parts.scheme == "file" or (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        is_good = False
    if not is_good:
        raise SaslProblem(
            ENDPOINT_URL,
            None,
            "is not the address of a token server or file",
            "use https://host/path or file:///path",
        )


def _check_options(module: LoginModule, mechanism: str, settings: Mapping[str, Any]) -> None:
    if mechanism in WITH_PASSWORD:
        missing = [name for name in ("username", "password") if name not in module.options]
        if missing:
            raise SaslProblem(
                JAAS,
                None,
                f"the login module has no option {' and no '.join(missing)}",
                'add username="..." and password="..." before the semicolon',
            )
    if mechanism == GSSAPI:
        _check_kerberos(module, settings)
    region = module.options.get(STS_REGION, "")
    if region and not AWS_REGION.fullmatch(region):
        raise SaslProblem(
            JAAS,
            None,
            f"the option {STS_REGION} is not the name of an AWS region",
            f'write it as in {STS_REGION}="eu-west-1"',
        )


def _check_kerberos(module: LoginModule, settings: Mapping[str, Any]) -> None:
    service = settings[SERVICE_NAME] or module.options.get("serviceName")
    remedy = "set it to the brokers' service name, often kafka"
    if not service:
        raise SaslProblem(SERVICE_NAME, None, "is not set", remedy)
    if not SERVICE.fullmatch(service):
        raise SaslProblem(SERVICE_NAME, service, "is not the name of a service", remedy)
    if module.is_true("useKeyTab") and not module.options.get("principal"):
        raise SaslProblem(
            JAAS, None, "useKeyTab without an option principal", 'add principal="user@REALM"'
        )
