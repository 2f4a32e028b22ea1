"""Keys for AWS_MSK_IAM, from where AWS's own SDKs find them, in their order.

    options of IAMLoginModule (awsProfileName, awsRoleArn ...)
    AWS_ACCESS_KEY_ID ...     AWS_WEB_IDENTITY_TOKEN_FILE     the profile in ~/.aws
    the container's server    the machine's server (IMDSv2)

Runs on: threads of `renewing`; servers may take their time.
"""

from __future__ import annotations

import configparser
import hashlib
import math
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sparkmirror.config.security.sasl import AWS_REGION, STS_REGION
from sparkmirror.errors import AuthenticationError, KafkaError, TransportError
from sparkmirror.foreign_json import parse_json
from sparkmirror.wire.sasl.aws_signing import Keys, Scope, Signable, authorization
from sparkmirror.wire.sasl.oauth import web
from sparkmirror.wire.secret_files import read_file

CONTAINER_SERVER = "http://169.254.170.2"
MACHINE_SERVER = "http://169.254.169.254"
# These servers are on the same machine: whoever has none should not wait for it.
NEAR_SECONDS = 2.0
# Keys without an end are looked up again, because somebody may have replaced them.
LASTING_SECONDS = 900.0
SESSION = "sparkmirror"


@dataclass(slots=True)
class Chain:
    """Finds keys; `options` are those of the login module."""

    options: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    home: str = "~"

    def fetch(self) -> Keys:
        """The keys of the first place that has some; AuthenticationError when none has."""
        role = self.options.get("awsRoleArn")
        if not role:
            return self._lasting(self._own())
        given = self.options.get("awsRoleAccessKeyId"), self.options.get("awsRoleSecretAccessKey")
        base = (
            Keys(given[0], given[1], self.options.get("awsRoleSessionToken", ""))
            if given[0] and given[1]
            else self._own()
        )
        return self._assume(
            base,
            role,
            self.options.get("awsRoleSessionName", SESSION),
            self.options.get("awsRoleExternalId", ""),
        )

    def region(self) -> str:
        """For brokers whose name does not tell; may be empty."""
        named = self.environment.get("AWS_REGION") or self.environment.get("AWS_DEFAULT_REGION")
        return _region(named or self._profile(self._profile_name()).get("region", ""))

    def files(self) -> tuple[str, ...]:
        """What an executor on another machine needs."""
        token = self.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        paths = [
            self._path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            self._path("AWS_CONFIG_FILE", "config"),
            *([token] if token else []),
        ]
        return tuple(path for path in paths if Path(path).is_file())

    def _own(self) -> Keys:
        if self.options.get("awsProfileName"):
            found = self._from_profile(self._profile_name())
            if found is None:
                raise AuthenticationError(
                    f"AWS profile '{self._profile_name()}' (awsProfileName) has no keys in "
                    f"{' or '.join(self._profile_files())}"
                )
            return found
        places: tuple[Callable[[], Keys | None], ...] = (
            self._from_environment,
            self._from_web_identity,
            lambda: self._from_profile(self._profile_name()),
            self._from_container,
            self._from_machine,
        )
        for place in places:
            found = place()
            if found is not None:
                return found
        raise AuthenticationError(
            "no AWS credentials: neither AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE, a profile "
            f"'{self._profile_name()}' in {' or '.join(self._profile_files())}, nor a role of this "
            "container or machine"
        )

    @staticmethod
    def _lasting(keys: Keys) -> Keys:
        if keys.expires_at != float("inf"):
            return keys
        now = time.time()
        return Keys(keys.access_key, keys.secret_key, keys.token, now, now + LASTING_SECONDS)

    # -- places ----------------------------------------------------------------------------------

    def _from_environment(self) -> Keys | None:
        get = self.environment.get
        key, secret = get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")
        return Keys(key, secret, get("AWS_SESSION_TOKEN", "")) if key and secret else None

    def _from_web_identity(self) -> Keys | None:
        get = self.environment.get
        path, role = get("AWS_WEB_IDENTITY_TOKEN_FILE"), get("AWS_ROLE_ARN")
        if not path or not role:
            return None
        return self._assume_by_token(path, role, get("AWS_ROLE_SESSION_NAME", SESSION))

    def _from_profile(self, name: str, depth: int = 0) -> Keys | None:
        profile = self._profile(name)
        role = profile.get("role_arn")
        session = profile.get("role_session_name", SESSION)
        if role and "web_identity_token_file" in profile:
            return self._assume_by_token(profile["web_identity_token_file"], role, session)
        source = profile.get("source_profile")
        if role and source and depth < 5:
            # A profile may be its own source: then its keys are meant.
            base = self._static(source) if source == name else self._from_profile(source, depth + 1)
            if base is None:
                raise AuthenticationError(f"AWS profile '{source}', source of '{name}': no keys")
            return self._assume(base, role, session, profile.get("external_id", ""))
        return self._static(name)

    def _static(self, name: str) -> Keys | None:
        profile = self._profile(name)
        key, secret = profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")
        return Keys(key, secret, profile.get("aws_session_token", "")) if key and secret else None

    def _from_container(self) -> Keys | None:
        get = self.environment.get
        relative = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        if relative and not relative.startswith("/"):
            raise AuthenticationError("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: not a path")
        url = CONTAINER_SERVER + relative if relative else get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        if not url:
            return None
        token = get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if file:
            token = _read_text(file).strip()
        headers = {"Authorization": token} if token else {}
        return _keys_of(_near("GET", url, headers))

    def _from_machine(self) -> Keys | None:
        get = self.environment.get
        if get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        server = get("AWS_EC2_METADATA_SERVICE_ENDPOINT", MACHINE_SERVER).rstrip("/")
        life = {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}
        try:
            token = _near("PUT", f"{server}/latest/api/token", life).decode("latin-1")
        except KafkaError:
            return None  # not a machine of AWS
        headers = {"X-aws-ec2-metadata-token": token}
        roles = f"{server}/latest/meta-data/iam/security-credentials/"
        role = _near("GET", roles, headers).decode("latin-1").split("\n")[0].strip()
        return _keys_of(_near("GET", roles + urllib.parse.quote(role), headers))

    # -- roles -----------------------------------------------------------------------------------

    def _assume(self, base: Keys, role: str, session: str, external_id: str) -> Keys:
        form = {"Action": "AssumeRole", "RoleArn": role, "RoleSessionName": session}
        if external_id:
            form["ExternalId"] = external_id
        return self._ask_sts(form, base)

    def _assume_by_token(self, path: str, role: str, session: str) -> Keys:
        token = _read_text(path).strip()
        form = {"Action": "AssumeRoleWithWebIdentity", "RoleArn": role, "RoleSessionName": session}
        return self._ask_sts({**form, "WebIdentityToken": token}, None)

    def _ask_sts(self, form: Mapping[str, str], base: Keys | None) -> Keys:
        region = _region(self.options.get(STS_REGION, ""))
        default = f"https://sts.{region}.amazonaws.com" if region else "https://sts.amazonaws.com"
        url = self.environment.get("AWS_ENDPOINT_URL_STS", default).rstrip("/") + "/"
        body = urllib.parse.urlencode({**form, "Version": "2011-06-15"}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if base is not None:
            headers |= _signed(
                url, body, headers, base, Scope(time.time(), region or "us-east-1", "sts")
            )
        answer = web.ask("POST", url, {**headers, "accept": "application/json"}, body)
        what = f"{form['Action']} of {form['RoleArn']}"
        if answer.status != 200:
            raise AuthenticationError(
                f"{what}: {web.address(url)} answers {answer.status}{_sts_error(answer.body)}"
            )
        try:
            found = parse_json(answer.body)[f"{form['Action']}Response"]
            row = dict(found[f"{form['Action']}Result"]["Credentials"])
        except (ValueError, KeyError, TypeError) as error:
            raise AuthenticationError(f"{what}: an answer that cannot be read") from error
        return _keys({**row, "Token": row.get("SessionToken", "")})

    # -- profiles --------------------------------------------------------------------------------

    def _profile_name(self) -> str:
        return self.options.get("awsProfileName") or self.environment.get("AWS_PROFILE", "default")

    def _profile_files(self) -> tuple[str, str]:
        return (
            self._path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            self._path("AWS_CONFIG_FILE", "config"),
        )

    def _path(self, variable: str, name: str) -> str:
        default = str(Path(self.home).expanduser() / ".aws" / name)
        return self.environment.get(variable, default)

    def _profile(self, name: str) -> dict[str, str]:
        """What both files say of it; the credentials file wins."""
        credentials, config = self._profile_files()
        title = name if name == "default" else f"profile {name}"
        return {**_section(config, title), **_section(credentials, name)}


def _region(name: str) -> str:
    """The name as it is; one with other characters could make a host's name another's."""
    if name and not AWS_REGION.fullmatch(name):
        raise AuthenticationError(
            "an AWS region that is none; check AWS_REGION, the region of the profile and the "
            f"option {STS_REGION} of sasl.jaas.config"
        )
    return name


def _section(path: str, title: str) -> dict[str, str]:
    try:
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(read_file(path).decode())
    except OSError:
        return {}  # most people have one of the two
    except (configparser.Error, UnicodeDecodeError) as error:
        raise AuthenticationError(f"the AWS file {path} cannot be read; check it") from error
    return dict(parser[title]) if parser.has_section(title) else {}


def _read_text(path: str) -> str:
    try:
        return read_file(path).decode("ascii")
    except OSError as error:
        reason = error.strerror or error
        raise AuthenticationError(f"the AWS token file {path} cannot be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise AuthenticationError(f"the AWS token file {path} holds no token") from error


def _near(method: str, url: str, headers: Mapping[str, str]) -> bytes:
    answer = web.ask(method, url, headers, timeout=NEAR_SECONDS, proxies=False)
    if answer.status != 200:
        raise TransportError(f"{web.address(url)}: HTTP status {answer.status}")
    return answer.body


def _signed(
    url: str, body: bytes, headers: Mapping[str, str], keys: Keys, scope: Scope
) -> dict[str, str]:
    signed = {**headers, "host": urllib.parse.urlsplit(url).netloc, "x-amz-date": scope.timestamp}
    if keys.token:
        signed["x-amz-security-token"] = keys.token
    request = Signable("POST", signed, body_hash=hashlib.sha256(body).hexdigest())
    return {**signed, "authorization": authorization(request, keys, scope)}


def _keys_of(body: bytes) -> Keys:
    try:
        row = parse_json(body)
    except ValueError as error:
        raise AuthenticationError("AWS credentials that cannot be read") from error
    return _keys(row)


def _keys(row: Any) -> Keys:
    try:
        expires = row["Expiration"]
        is_text = isinstance(expires, str)
        expires_at = datetime.fromisoformat(expires).timestamp() if is_text else float(expires)
        key, secret, token = row["AccessKeyId"], row["SecretAccessKey"], row.get("Token", "")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise AuthenticationError("AWS credentials that cannot be read") from error
    if not math.isfinite(expires_at):
        raise AuthenticationError("AWS credentials that never expire")
    return Keys(str(key), str(secret), str(token), time.time(), expires_at)


def _sts_error(body: bytes) -> str:
    try:
        code = parse_json(body)["Error"]["Code"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f" ({code})" if isinstance(code, str) and code.isalnum() else ""
