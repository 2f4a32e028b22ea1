"""A real Kerberos realm for tests: MIT's KDC on loopback, principals and their keytabs.

Its programs are those of this machine, or come from Debian's packages, which are unpacked into the
cache folder: nothing is installed, nobody has to be root.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import Child, log_tail, start_child
from sparkmirror.errors import MissingPart
from sparkmirror.spark import machine
from tests.clusters import wait_for

REALM = "TEST"
START_SECONDS = 30.0
_SECONDS = 120.0
_PACKAGES = (
    "krb5-kdc", "krb5-admin-server", "libkadm5srv-mit12", "libkdb5-10", "libgssrpc4",
    "libverto1", "libverto-libev1", "libev4",
)  # fmt: skip
_KRB5_CONF = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = {host}:{port}
 }}
"""
_KDC_CONF = """\
[kdcdefaults]
 kdc_listen = {host}:{port}
 kdc_tcp_listen = {host}:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
 }}
"""
_DB_MODULES = "[dbmodules]\n db_module_dir = {}\n"


@dataclass(frozen=True)
class Programs:
    """Where they are, and where their libraries are if those are not the system's."""

    folder: Path
    libraries: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {} if self.libraries is None else {"LD_LIBRARY_PATH": str(self.libraries)}

    @property
    def db_modules(self) -> str:
        """Lines of kdc.conf that say where the database's module is."""
        if self.libraries is None:
            return ""
        return _DB_MODULES.format(self.libraries / "krb5" / "plugins" / "kdb")


def kerberos_programs() -> Programs:
    """MIT's programs. Raises MissingPart, which says what to install."""
    installed = shutil.which("krb5kdc", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if installed is not None and Path(installed).with_name("kadmin.local").exists():
        return Programs(Path(installed).parent)
    home = machine.cache_folder() / "kerberos"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = home / "root"
        if not root.is_dir():
            _unpack(home, root)
    (libraries,) = root.glob("usr/lib/*-linux-gnu*")
    return Programs(root / "usr" / "sbin", libraries)


def _unpack(home: Path, root: Path) -> None:
    part = home / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        _download(part)
        for package in part.glob("*.deb"):
            _run(["dpkg", "-x", str(package), str(part / "root")], part)
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingPart(
            f"tests of GSSAPI need a KDC, and Debian's packages could not be had ({error}): "
            "install krb5-kdc and krb5-admin-server"
        ) from error
    (part / "root").rename(root)


def _download(folder: Path) -> None:
    """By this machine's lists of packages; by fresh ones if it has none, or old ones."""
    try:
        _run(["apt-get", "download", *_PACKAGES], folder)
    except subprocess.CalledProcessError:
        for name in ("lists/partial", "archives/partial"):
            (folder / name).mkdir(parents=True)
        places = {"State::lists": "lists", "Cache::archives": "archives"}
        options = [f"-oDir::{key}={folder / name}" for key, name in places.items()]
        apt = ["apt-get", "-oDebug::NoLocking=1", *options]
        _run([*apt, "update"], folder)
        _run([*apt, "download", *_PACKAGES], folder)


def _run(words: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        timeout=_SECONDS,
        check=True,
    )


class Kdc:
    """A realm in a `with` block; clients find it through `config`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "krb5.conf"
        self.log_path = folder / "kdc.log"
        self._programs = kerberos_programs()
        self._port = ReservedPort()
        self._child: Child | None = None
        place = {"realm": REALM, "host": HOST, "port": self._port.number, "folder": folder}
        self.config.write_text(_KRB5_CONF.format(**place))
        kdc_conf = folder / "kdc.conf"
        kdc_conf.write_text(_KDC_CONF.format(**place) + self._programs.db_modules)
        profile = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(kdc_conf)}
        self._environment = {**self._programs.environment, **profile}

    def __enter__(self) -> Self:
        self._do("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._port.close()

    def start(self) -> None:
        """Start the KDC and wait until it listens."""
        command: list[str | Path] = [self._programs.folder / "krb5kdc", "-n"]
        self._child = start_child(command, self.log_path, environment=self._environment)
        wait_for(
            lambda: _is_listening(self._port.number),
            within=START_SECONDS,
            describe=lambda: f"the KDC; it says:\n{log_tail(self.log_path)}",
        )

    def stop(self) -> None:
        """Nobody gets a ticket any more."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def add(self, principal: str) -> Path:
        """A new principal; its keytab."""
        keytab = self.folder / f"{principal.replace('/', '-')}.keytab"
        self._do("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._do("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
        return keytab

    def _do(self, program: str, *words: str) -> None:
        _run([str(self._programs.folder / program), *words], self.folder, self._environment)


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1.0).close()
    except OSError:
        return False
    return True
