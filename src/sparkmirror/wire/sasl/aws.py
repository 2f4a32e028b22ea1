"""Keys of AWS, and the signature that is a password for MSK: both by botocore, the extra `[aws]`.

botocore looks for keys where AWS's own SDKs do, in their order, SSO and credential_process
included. Here are the options of IAMLoginModule (awsRoleArn ...), a limit to how long that may
take, and files that the worker has sent to an executor. It is imported only for a
login at MSK: an installation without the extra never loads it.

Runs on: threads of `renewing`; servers may take their time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import urllib.parse
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    AssumeRoleWithWebIdentityProvider,
    Credentials,
    DeferredRefreshableCredentials,
    RefreshableCredentials,
)
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    MetadataRetrievalError,
)
from botocore.session import Session

from sparkmirror.config.masking import remember_token
from sparkmirror.config.security.sasl import AWS_REGION, STS_REGION
from sparkmirror.errors import AuthenticationError, MirrorError
from sparkmirror.wire.sasl.aws_files import profile_paths
from sparkmirror.wire.secret_files import path_of, read_file

# Rejections and failures are reported here; at lower levels botocore logs whole responses.
logging.getLogger("botocore").setLevel(logging.CRITICAL)

# botocore renews keys ten minutes before they end: ours are at least that good when they come.
LASTING_SECONDS = 900.0
# All together: a credential_process may hang for ever.
FETCH_SECONDS = 60.0
# Servers of this machine or container: without one there is nothing to wait for.
NEAR_SECONDS = 2
STS_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
# Without a region: the one STS of all of them.
STS_GLOBAL = "aws-global"
SESSION = "sparkmirror"
WEB_IDENTITY = AssumeRoleWithWebIdentityProvider.METHOD
# Skipped when a profile is named: that must be the source of the keys, or it is an error.
SERVERS = ("container-role", "iam-role")
# The text of these may quote a server or a program, perhaps keys.
UNREADABLE = (CredentialRetrievalError, MetadataRetrievalError)
RELATIVE_URI = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"


@dataclass(frozen=True, slots=True)
class Keys:
    """Credentials of AWS; `token` belongs to temporary ones. Times in seconds since 1970."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)
    starts_at: float = 0.0
    expires_at: float = float("inf")

    def __post_init__(self) -> None:
        remember_token(self.secret_key)
        remember_token(self.token)


def presigned(
    host: str, query: Mapping[str, str], keys: Keys, scope: tuple[str, str], expires_seconds: int
) -> dict[str, str]:
    """The query of a GET of `host`, with what makes it valid; `scope` is service and region."""
    request = AWSRequest("GET", f"https://{host}/", params=dict(query))
    credentials = Credentials(keys.access_key, keys.secret_key, keys.token or None)
    SigV4QueryAuth(credentials, *scope, expires=expires_seconds).add_auth(request)
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.url).query))


class AwsCredentials:
    """Finds keys; `options` are those of the login module. Safe on any thread."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._running: Future[Keys] | None = None
        # Kept only while botocore renews it: other keys may have been replaced.
        self._renewed: RefreshableCredentials | None = None

    def fetch(self) -> Keys:
        """The keys of the first place that has some; AuthenticationError when none has."""
        with self._lock:
            future = self._running
            if future is None or future.done():
                future = self._running = Future()
                threading.Thread(
                    target=self._run, args=(future,), name="AWS credentials", daemon=True
                ).start()
        try:
            return future.result(FETCH_SECONDS)
        except FutureTimeoutError as error:
            raise AuthenticationError(
                f"AWS credentials: none after {FETCH_SECONDS:g} s; check the credential_process of "
                "the profile, and whether AWS's servers can be reached"
            ) from error

    def region(self) -> str:
        """For brokers whose name does not contain it; may be empty."""
        named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        try:
            return _region(named or self._session().get_scoped_config().get("region", ""))
        except BotoCoreError as error:
            raise AuthenticationError(f"region of AWS: {error}") from error

    def _run(self, future: Future[Keys]) -> None:
        try:
            future.set_result(self._look_up())
        except MirrorError as error:
            future.set_exception(error)
        except BaseException:  # callers that wait must get the error; the thread ends as it would
            future.set_exception(AuthenticationError("AWS credentials: failed, see the log"))
            raise

    def _look_up(self) -> Keys:
        try:
            found = self._renewed or self._find()
            if isinstance(found, RefreshableCredentials):
                self._renewed = found
            frozen = found.get_frozen_credentials()
        except ClientError as error:
            raise AuthenticationError(_rejection(error)) from error
        except UNREADABLE as error:
            raise AuthenticationError(
                f"AWS credentials of {error.kwargs.get('provider', 'this machine')} cannot be read"
            ) from None
        except (BotoCoreError, OSError) as error:
            raise AuthenticationError(f"AWS credentials: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            what = type(error).__name__
            raise AuthenticationError(f"AWS credentials cannot be read ({what})") from None
        now = time.time()
        key, secret, token = frozen.access_key, frozen.secret_key, frozen.token
        return Keys(key, secret, token or "", now, now + LASTING_SECONDS)

    def _find(self) -> Credentials:
        session = self._session()
        role = self._options.get("awsRoleArn")
        if not role:
            return self._own(session)
        given = self._options.get("awsRoleAccessKeyId"), self._options.get("awsRoleSecretAccessKey")
        token = self._options.get("awsRoleSessionToken") or None
        base = Credentials(*given, token) if all(given) else self._own(session)
        extra = {"RoleSessionName": self._options.get("awsRoleSessionName", SESSION)}
        if external_id := self._options.get("awsRoleExternalId"):
            extra["ExternalId"] = external_id
        fetcher = AssumeRoleCredentialFetcher(session.create_client, base, role, extra_args=extra)
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")

    def _own(self, session: Session) -> Credentials:
        relative = os.environ.get(RELATIVE_URI, "/")
        if not relative.startswith("/"):
            raise AuthenticationError(f"{RELATIVE_URI}: not a path")
        found = session.get_credentials()
        if found is not None:
            return found
        paths = " or ".join(profile_paths(os.environ).values())
        if profile := self._options.get("awsProfileName"):
            raise AuthenticationError(
                f"AWS profile '{profile}' (awsProfileName) has no keys in {paths}"
            )
        profile = os.environ.get("AWS_PROFILE", "default")
        raise AuthenticationError(
            "no AWS credentials: neither AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE, a profile "
            f"'{profile}' in {paths}, nor a role of this container or machine"
        )

    def _session(self) -> Session:
        profile = self._options.get("awsProfileName") or None
        session = Session(profile=profile)
        for name, path in profile_paths(os.environ).items():
            try:
                session.set_config_variable(name, path_of(path))
            except OSError:
                continue  # most people have one of the two
        session.set_config_variable("metadata_service_timeout", NEAR_SECONDS)
        session.set_default_client_config(STS_CONFIG)
        if region := self._sts_region(session):
            session.set_config_variable("region", region)
        self._replace_token_reader(session, profile)
        return session

    def _replace_token_reader(self, session: Session, profile: str | None) -> None:
        """A token that the worker has sent is in no file of this machine."""
        resolver: Any = session.get_component("credential_provider")
        provider = AssumeRoleWithWebIdentityProvider(
            load_config=lambda: session.full_config,
            client_creator=session.create_client,
            profile_name=profile or os.environ.get("AWS_PROFILE", "default"),
            disable_env_vars=profile is not None,
            token_loader_cls=_TokenFile,
        )
        resolver.insert_after(WEB_IDENTITY, provider)
        resolver.remove(WEB_IDENTITY)  # the first of the two
        for name in SERVERS if profile else ():
            resolver.remove(name)

    def _sts_region(self, session: Session) -> str | None:
        """Where to ask for roles, if it is not where the profile has it."""
        named = _region(self._options.get(STS_REGION, ""))
        return named or (None if session.get_config_variable("region") else STS_GLOBAL)


class _TokenFile:
    """What botocore calls to read the token of a web identity."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self) -> str:
        try:
            return read_file(self._path).decode("ascii").strip()
        except OSError as error:
            reason = error.strerror or error
            text = f"the AWS token file {self._path} cannot be read: {reason}"
            raise AuthenticationError(text) from error
        except UnicodeDecodeError as error:
            raise AuthenticationError(f"the AWS token file {self._path} holds no token") from error


def _region(name: str) -> str:
    """The name as it is; one with other characters could make a host's name another's."""
    if name and not AWS_REGION.fullmatch(name):
        raise AuthenticationError(
            "an AWS region that is none; check AWS_REGION, the region of the profile and the "
            f"option {STS_REGION} of sasl.jaas.config"
        )
    return name


def _rejection(error: ClientError) -> str:
    """The request that AWS rejected, without its text, which may quote what we sent."""
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "?")
    return f"AWS credentials: {error.operation_name} was rejected: {status} ({code})"
