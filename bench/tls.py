"""Makes the certificate of the brokers' TLS listeners with Java's keytool, as users do."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sparkmirror.errors import MissingPart
from sparkmirror.spark import machine

LISTENER = "SSL"
_PASSWORD = "bench-password"


def make_store(folder: Path) -> Path:
    """Make a PKCS12 store with a key of 2048 bits and a self-signed certificate for 127.0.0.1."""
    path = folder / "broker.p12"
    path.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    program = Path(machine.java_program()).with_name("keytool")
    command = f"{program} -genkeypair -alias broker -keyalg RSA -keysize 2048 -validity 30"
    words = ["-dname", "CN=bench", "-ext", "SAN=IP:127.0.0.1", "-storetype", "PKCS12"]
    store = ["-keystore", str(path), "-storepass", _PASSWORD]
    done = subprocess.run(
        [*command.split(), *words, *store], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MissingPart(f"make a certificate with {program}: {done.stdout}{done.stderr}")
    return path


def broker_settings(store: Path) -> dict[str, str]:
    """The settings of the listener."""
    return _store_settings("ssl.keystore", store)


def client_settings(store: Path) -> dict[str, str]:
    """The settings of a client of such a listener."""
    return {"security.protocol": "SSL", **_store_settings("ssl.truststore", store)}


def _store_settings(prefix: str, store: Path) -> dict[str, str]:
    return {
        f"{prefix}.type": "PKCS12",
        f"{prefix}.location": str(store),
        f"{prefix}.password": _PASSWORD,
    }
