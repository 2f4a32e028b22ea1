"""Classes of users whose code misbehaves when it is loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.mirror.policy import DefaultReplicationPolicy, make_policy
from sparkmirror.mirror.user_classes import load_user_class


class ExitingPolicy(DefaultReplicationPolicy):
    """Ends the program when it is made."""

    @classmethod
    def from_settings(cls, *_: Any) -> Any:
        sys.exit("enough")


def refuse(reason: str) -> ConfigError:
    return ConfigError("key", "value", reason)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys\nsys.exit(3)", r"SystemExit\(3\)"),
        ("raise SystemExit", r"SystemExit\(None\)"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def", "SyntaxError"),
        ("import no_such_module_at_all", "No module named"),
    ],
)
def test_module_that_cannot_be_imported_is_an_error(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "users_own_code.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=reason):
        load_user_class("filter", "users_own_code:Filter", refuse)
    assert "users_own_code" not in sys.modules


def test_class_that_ends_the_program_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"SystemExit\('enough'\)") as caught:
        make_policy(f"{__name__}:ExitingPolicy", "A", None, internal_separator_enabled=True)
    assert caught.value.key == "replication.policy.class"
