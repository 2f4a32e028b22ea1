"""From `sasl.*` settings to a login: which mechanism, with credentials from where.

Runs on: executor and worker, once per process and set of settings.
"""

from __future__ import annotations

import os
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from sparkmirror.config.security import sasl
from sparkmirror.config.security.jaas import LoginModule
from sparkmirror.errors import AuthenticationError, ConfigError, MissingPart
from sparkmirror.wire.sasl.aws_files import aws_files
from sparkmirror.wire.sasl.gssapi import GssapiLogin
from sparkmirror.wire.sasl.mechanism import Login
from sparkmirror.wire.sasl.oauth.assertions import assertion_files, assertion_form
from sparkmirror.wire.sasl.oauth.oauthbearer import OAuthLogin, check_extensions
from sparkmirror.wire.sasl.oauth.tokens import (
    UNSECURED,
    EndpointTokens,
    FileTokens,
    UnsecuredTokens,
    client_credentials,
)
from sparkmirror.wire.sasl.oauth.web import TIMEOUT_SECONDS, address
from sparkmirror.wire.sasl.plain import PlainLogin
from sparkmirror.wire.sasl.renewing import Renewing, Schedule
from sparkmirror.wire.sasl.scram import ScramLogin

MakeContext = Callable[[Mapping[str, str]], ssl.SSLContext]
"""A TLS context for `ssl.*` options of a login module."""

CREDENTIALS = "sasl.oauthbearer.client.credentials.client."
# Of Strimzi's handler, and what Kafka's own calls them.
STRIMZI_OPTIONS = {
    "oauth.client.id": "clientId",
    "oauth.client.secret": "clientSecret",
    "oauth.scope": "scope",
}


class LoginMaker:
    """Makes the login of one cluster's clients."""

    def __init__(self, alias: str, settings: Mapping[str, Any], make_context: MakeContext) -> None:
        """`settings` has every security key.

        Raises:
            ConfigError: they do not fit together.
        """
        self._where = f"cluster '{alias}'"
        self._settings = settings
        self._make_context = make_context
        try:
            self._module: LoginModule = sasl.login_module(settings)
        except sasl.SaslProblem as problem:
            raise ConfigError(
                problem.key, problem.value, problem.reason, problem.remedy, self._where
            ) from problem
        self._options = self._module.options

    def make(self) -> Login:
        """The login. Raises MissingPart when this machine lacks what it needs."""
        mechanism = self._settings[sasl.MECHANISM]
        if mechanism == sasl.PLAIN:
            return PlainLogin(self._options["username"], self._options["password"])
        if mechanism in sasl.SCRAM:
            return self._scram(mechanism)
        if mechanism == sasl.GSSAPI:
            return self._kerberos()
        if mechanism == sasl.MSK_IAM:
            return self._iam()
        return self._oauth()

    def files(self) -> tuple[str, ...]:
        """What an executor on another machine needs of this one's disk."""
        mechanism = self._settings[sasl.MECHANISM]
        if mechanism == sasl.GSSAPI:
            paths = [self._options.get("keyTab"), self._options.get("ticketCache")]
            return tuple(path.removeprefix("FILE:") for path in paths if path)
        if mechanism == sasl.MSK_IAM or self._handler() == sasl.IAM_HANDLER:
            return aws_files(os.environ)
        if mechanism == sasl.OAUTHBEARER:
            path = _file_path(self._endpoint())
            return (*([path] if path else []), *assertion_files(self._get))
        return ()

    def _get(self, name: str) -> Any:
        return self._settings[name]

    def _handler(self) -> str:
        return (self._settings[sasl.LOGIN_HANDLER] or "").removeprefix(sasl.SHADED)

    def _renewing(self, name: str, fetch: Callable[[], Any]) -> Renewing[Any]:
        prefix = "sasl.login.refresh."
        schedule = Schedule(
            self._settings[f"{prefix}window.factor"],
            self._settings[f"{prefix}window.jitter"],
            self._settings[f"{prefix}min.period.seconds"],
            self._settings[f"{prefix}buffer.seconds"],
        )
        return Renewing(name, fetch, time.time, schedule)

    # -- mechanisms ------------------------------------------------------------------------------

    def _scram(self, mechanism: str) -> Login:
        token = self._module.is_true("tokenauth")
        options = self._options
        return ScramLogin(mechanism, options["username"], options["password"], token=token)

    def _kerberos(self) -> Login:
        service = self._settings[sasl.SERVICE_NAME] or self._options["serviceName"]
        keytab = self._module.is_true("useKeyTab")
        return GssapiLogin(service, self._options, keytab=keytab)

    def _iam(self, *, as_token: bool = False) -> Login:
        """The only login that needs botocore, which other installations may lack."""
        try:
            from sparkmirror.wire.sasl import aws, msk_iam  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise MissingPart(
                f"{self._where}: AWS IAM needs {error.name}, which is not installed: "
                "pip install 'sparkmirror[aws]'"
            ) from error
        credentials = aws.AwsCredentials(self._options)
        kind = msk_iam.MskTokenLogin if as_token else msk_iam.MskIamLogin
        return kind(self._renewing("AWS credentials", credentials.fetch), credentials.region)

    def _oauth(self) -> Login:
        if self._handler() == sasl.IAM_HANDLER:
            return self._iam(as_token=True)
        extensions = self._extensions()
        subject = self._settings["sasl.oauthbearer.sub.claim.name"]
        if self._is_unsecured():
            own = UnsecuredTokens(self._options, extensions)
            return OAuthLogin(self._renewing("token", own.fetch), "sasl.jaas.config", _no_skew)
        path = _file_path(self._endpoint())
        if path:
            file = FileTokens(path, subject, extensions)
            return OAuthLogin(self._renewing("token file", file.fetch), path, _no_skew)
        server = self._server(subject, extensions)
        tokens = self._renewing("token server", server.fetch)
        return OAuthLogin(tokens, address(server.url), lambda: server.skew_seconds)

    def _is_unsecured(self) -> bool:
        handler = self._handler()
        named = any(name.startswith(UNSECURED) for name in self._options)
        return handler == sasl.UNSECURED_HANDLER or (not handler and named)

    def _endpoint(self) -> str:
        given = self._settings[sasl.ENDPOINT_URL] or self._options.get(sasl.STRIMZI_ENDPOINT)
        return given or ""

    def _server(self, subject: str, extensions: Mapping[str, str]) -> EndpointTokens:
        url = self._endpoint()
        if not url:
            raise ConfigError(
                sasl.ENDPOINT_URL,
                None,
                "is not set, and the login module has no options of a token of its own",
                "set it to the https: address of the token server, or file: of a token",
                self._where,
            )
        get = self._settings.__getitem__
        waits = [get(f"sasl.login.{name}.timeout.ms") for name in ("connect", "read")]
        given = [wait for wait in waits if wait]
        return EndpointTokens(
            url,
            self._client_header,
            self._form,
            subject,
            extensions,
            self._context(),
            max(given) / 1000 if given else TIMEOUT_SECONDS,
            get("sasl.login.retry.backoff.ms") / 1000,
            get("sasl.login.retry.backoff.max.ms") / 1000,
        )

    def _context(self) -> ssl.SSLContext | None:
        options = {key: value for key, value in self._options.items() if key.startswith("ssl.")}
        return self._make_context(options) if options else None

    def _is_assertion(self) -> bool:
        return bool(self._settings[sasl.RETRIEVER].removeprefix(sasl.SHADED) == sasl.JWT_BEARER)

    def _form(self) -> Mapping[str, str]:
        scope = self._settings["sasl.oauthbearer.scope"] or self._option("scope") or ""
        if self._is_assertion():
            return assertion_form(self._get, scope)
        form = {"grant_type": "client_credentials"}
        return {**form, "scope": scope} if scope else form

    def _client_header(self) -> Mapping[str, str]:
        if self._is_assertion():
            return {}
        secret = self._settings[f"{CREDENTIALS}secret"]
        client_id = self._settings[f"{CREDENTIALS}id"] or self._option("clientId")
        password = secret.reveal() if secret else self._option("clientSecret")
        urlencode = bool(self._settings["sasl.oauthbearer.header.urlencode"])
        return client_credentials(client_id or "", password or "", urlencode=urlencode)

    def _option(self, name: str) -> str | None:
        """An option of the login module, also under the name that Strimzi gives it."""
        other = next((key for key, same in STRIMZI_OPTIONS.items() if same == name), "")
        return self._options.get(name) or self._options.get(other)

    def _extensions(self) -> dict[str, str]:
        found = {}
        for key, value in self._options.items():
            for prefix in ("extension_", "unsecuredLoginExtension_"):
                if key.startswith(prefix):
                    found[key.removeprefix(prefix)] = value
        try:
            return check_extensions(found)
        except AuthenticationError as error:
            raise ConfigError(sasl.JAAS, None, str(error), "", self._where) from error


def _file_path(url: str) -> str | None:
    """The path of a `file:` URL; None for others."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.unquote(parts.path) if parts.scheme == "file" else None


def _no_skew() -> float:
    return 0.0
