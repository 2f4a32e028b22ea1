"""Placeholders, the three providers, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkmirror.config.files.providers import load_providers, resolve
from sparkmirror.config.findings import Findings
from sparkmirror.errors import ConfigErrors

PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDERS = {
    "config.providers": "file, dir,env",
    "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
}
ENVIRONMENT = {"USER_NAME": "ann", "OTHER": "x"}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "a.properties").write_text("password=s3cret\nuser = ann\nname=J\u00f6rg\n", "utf-8")
    (tmp_path / "token").write_text("t0ken", "utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "bad.properties").write_text("a=\\u12", "utf-8")
    return tmp_path


def resolved(value: str, extra: Mapping[str, str] | None = None) -> str:
    findings = Findings()
    props = PROVIDERS | dict(extra or {})
    providers = load_providers(props, findings, ENVIRONMENT)
    found = resolve({"key": value}, providers, findings)
    findings.raise_errors()
    return found["key"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("plain", "plain", id="no-placeholder"),
        pytest.param("${file:{dir}/a.properties:password}", "s3cret", id="file"),
        pytest.param("${file:{dir}/a.properties:name}", "J\u00f6rg", id="file-is-utf-8"),
        pytest.param("${dir:{dir}:token}", "t0ken", id="directory"),
        pytest.param("${env:USER_NAME}", "ann", id="environment"),
        pytest.param("<${env:USER_NAME}@${dir:{dir}:token}>", "<ann@t0ken>", id="two-in-a-text"),
        pytest.param("${vault:a:b}", "${vault:a:b}", id="unknown-provider-stays"),
        pytest.param("${nothing}", "${nothing}", id="no-provider-stays"),
    ],
)
def test_placeholder_is_replaced(secrets: Path, value: str, expected: str) -> None:
    assert resolved(value.replace("{dir}", str(secrets))) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param("${file:{dir}/none:a}", "cannot be read: No such file", id="no-file"),
        pytest.param("${file:{dir}/a.properties:no}", "has no key 'no'", id="no-key"),
        pytest.param("${file:password}", "has no path", id="no-path"),
        pytest.param("${file:{dir}/binary:a}", "is not text in UTF-8", id="binary"),
        pytest.param("${file:{dir}/bad.properties:a}", "malformed escape", id="bad-escape"),
        pytest.param("${dir:{dir}/none:token}", "is not a directory", id="no-directory"),
        pytest.param("${dir:{dir}:none}", "cannot be read: No such file", id="no-file-there"),
        pytest.param("${dir:{dir}:../x}", "'../x' is not a file name", id="leaves-directory"),
        pytest.param("${env:NONE}", "no variable 'NONE'", id="no-variable"),
        pytest.param("${env:a:USER_NAME}", "variables have no path", id="path-for-variable"),
    ],
)
def test_missing_value_is_an_error(secrets: Path, value: str, reason: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        resolved(value.replace("{dir}", str(secrets)))
    assert reason in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("allowed", "path", "is_allowed"),
    [
        pytest.param("{dir}", "{dir}/a.properties", True, id="inside"),
        pytest.param("/, {dir}", "{dir}/a.properties", True, id="one-of-two"),
        pytest.param("{dir}/a.properties", "{dir}/a.properties", True, id="the-file"),
        pytest.param("{dir}/token", "{dir}/a.properties", False, id="another-file"),
        pytest.param("{dir}/token", "{dir}/token/../a.properties", False, id="dots"),
    ],
)
def test_allowed_paths_limit_the_file_provider(
    secrets: Path, allowed: str, path: str, is_allowed: bool
) -> None:
    param = {"config.providers.file.param.allowed.paths": allowed.replace("{dir}", str(secrets))}
    value = "${file:" + path.replace("{dir}", str(secrets)) + ":user}"
    if is_allowed:
        assert resolved(value, param) == "ann"
        return
    with pytest.raises(ConfigErrors, match=r"allowed\.paths does not allow"):
        resolved(value, param)


def test_allowed_paths_limit_the_directory_provider(secrets: Path) -> None:
    param = {"config.providers.dir.param.allowed.paths": str(secrets / "token")}
    with pytest.raises(ConfigErrors, match=r"allowed\.paths does not allow"):
        resolved("${dir:" + str(secrets) + ":token}", param)


def test_allowlist_finds_a_part_of_the_name_as_in_kafka() -> None:
    param = {"config.providers.env.param.allowlist.pattern": "^USER"}
    assert resolved("${env:USER_NAME}", param) == "ann"
    with pytest.raises(ConfigErrors, match=r"allowlist\.pattern does not allow 'OTHER'"):
        resolved("${env:OTHER}", param)


@pytest.mark.parametrize(
    ("change", "key", "reason"),
    [
        pytest.param(
            {"config.providers.env.class": "com.x.Vault"},
            "config.providers.env.class",
            "unknown config provider",
            id="unknown-class",
        ),
        pytest.param(
            {"config.providers": "file,vault"},
            "config.providers.vault.class",
            "is required and not set",
            id="no-class",
        ),
        pytest.param(
            {"config.providers": "file,,env"},
            "config.providers",
            "empty list element",
            id="empty-name",
        ),
        pytest.param(
            {"config.providers.file.param.allowed.paths": "relative"},
            "config.providers.file.param.allowed.paths",
            "'relative' is not an existing absolute path",
            id="relative-path",
        ),
        pytest.param(
            {"config.providers.env.param.allowlist.pattern": "["},
            "config.providers.env.param.allowlist.pattern",
            "a [ is not closed",
            id="bad-pattern",
        ),
        pytest.param(
            {"config.providers.env.param.allowlist.pattern": "*"},
            "config.providers.env.param.allowlist.pattern",
            "not a regular expression: nothing to repeat",
            id="glob-pattern",
        ),
    ],
)
def test_bad_provider_is_an_error(change: dict[str, str], key: str, reason: str) -> None:
    findings = Findings()
    load_providers(PROVIDERS | change, findings, ENVIRONMENT)
    assert [(error.key, error.reason) for error in findings.errors] == [(key, reason)]


def test_properties_resolve_with_their_own_providers(
    secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKMIRROR_TEST", "found")
    assert resolve(PROVIDERS | {"a": "${env:SPARKMIRROR_TEST}"})["a"] == "found"
    with pytest.raises(ConfigErrors, match="a=") as caught:
        resolve(PROVIDERS | {"a": "${env:SPARKMIRROR_NONE}", "b": "${file:/none:x}"})
    assert [error.key for error in caught.value.errors] == ["a", "b"]


def test_without_providers_nothing_is_replaced() -> None:
    assert resolve({"a": "${env:HOME}"}) == {"a": "${env:HOME}"}
