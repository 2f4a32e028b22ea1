"""Everywhere a secret could turn up, each as text under the name of the place."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from sparkmirror.demo.client import admin_client
from sparkmirror.demo.reading import read_topics
from sparkmirror.embedded import KafkaCluster

Place = tuple[str, str]
# Loopback only, so that no proxy setting of the environment gets in between.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def processes(roots: Iterable[psutil.Process]) -> list[psutil.Process]:
    """These and all that they have started."""
    found = []
    for root in roots:
        found += [root, *root.children(recursive=True)]
    return found


def command_lines(found: Iterable[psutil.Process]) -> Iterator[Place]:
    """What `ps` shows to every user of the machine."""
    for process in found:
        with suppress(psutil.NoSuchProcess):
            yield f"ps {process.pid} {process.name()}", " ".join(process.cmdline())


def environments(found: Iterable[psutil.Process]) -> Iterator[Place]:
    """/proc/PID/environ: for the same user only."""
    for process in found:
        with suppress(psutil.NoSuchProcess):
            text = "\n".join(f"{name}={value}" for name, value in process.environ().items())
            yield f"environment of {process.pid} {process.name()}", text


def files(*folders: Path) -> Iterator[Place]:
    """Every file below the folders, whatever it is."""
    for folder in folders:
        for path in folder.rglob("*"):
            with suppress(FileNotFoundError):
                if path.is_file():
                    yield str(path), path.read_bytes().decode(errors="replace")


def records(cluster: KafkaCluster, topics: re.Pattern[str]) -> Iterator[Place]:
    """Keys, values and headers of every topic whose name matches."""
    bootstrap = cluster.bootstrap_servers
    names = [name for name in topic_names(cluster) if topics.search(name)]
    for topic, partitions in read_topics(bootstrap, names, read_committed=False).items():
        for at, found in partitions.items():
            text = "\n".join(repr(record.content) for record in found)
            yield f"topic {topic}-{at}", text


def topic_names(cluster: KafkaCluster) -> list[str]:
    return list(admin_client(cluster.bootstrap_servers).list_topics(timeout=20).topics)


def pages(url: str, paths: Iterable[str]) -> Iterator[Place]:
    """Answers of a web server, errors too."""
    for path in paths:
        try:
            with _opener.open(url + path, timeout=20) as response:
                yield path, response.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            with error:
                yield path, error.read().decode(errors="replace")


def found_in(places: Iterable[Place], secrets: Iterable[str]) -> list[str]:
    """Which secret is where; nothing of the text around it, which may have others."""
    wanted = list(secrets)
    return [f"{secret} in {name}" for name, text in places for secret in wanted if secret in text]
