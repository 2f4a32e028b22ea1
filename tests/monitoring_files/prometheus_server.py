"""A real Prometheus in a process of its own, and promtool; Debian's package `prometheus` has both.

`tools/preflight` installs it. A server scrapes every second, with the labels that Prometheus adds
to Strimzi's pods, so that queries of Strimzi's dashboards can be asked as they are.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from sparkmirror.embedded.ports import HOST, ReservedPort
from sparkmirror.embedded.process import ManagedProcess
from tests.clusters import wait_for

READY_SECONDS = 30.0
_SCRAPES = 3
_REQUEST_SECONDS = 10.0

# What Strimzi's PodMonitor makes of the labels of a pod.
LABELS = {
    "namespace": "kafka",
    "strimzi_io_cluster": "my-mirror",
    "strimzi_io_kind": "KafkaMirrorMaker2",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of an instant vector."""

    labels: dict[str, str]
    value: float


class PrometheusServer(ManagedProcess):
    """Scrapes `targets` (host:port); `ask` it when `wait_scraped` is over."""

    def __init__(
        self, folder: Path, port: ReservedPort, targets: Sequence[str], rules: Sequence[Path] = ()
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._url = f"http://{HOST}:{port.number}"
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(_settings(targets, rules)), "ascii")
        command = [
            shutil.which("prometheus") or "/usr/bin/prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={HOST}:{port.number}",
            "--storage.tsdb.retention.time=1h",
            "--log.level=warn",
        ]
        super().__init__("Prometheus", folder / "prometheus.log", command)

    def try_ready(self) -> bool:
        try:
            return httpx.get(f"{self._url}/-/ready", timeout=_REQUEST_SECONDS).is_success
        except httpx.TransportError:
            return False

    def wait_scraped(self) -> None:
        """Return once every target was scraped often enough for `rate`."""
        query = f"min(count_over_time(up[5m]) * up) >= {_SCRAPES}"
        wait_for(lambda: self.ask(query), within=READY_SECONDS, describe=self._targets)

    def ask(self, query: str) -> list[Sample]:
        """The instant vector of a query. Its values may be NaN."""
        found = self._get("/api/v1/query", {"query": query})
        assert found["resultType"] == "vector", f"{query}: {found['resultType']}"
        return [
            Sample(
                {name: text for name, text in each["metric"].items() if name != "__name__"},
                float(each["value"][1]),
            )
            for each in found["result"]
        ]

    def number(self, query: str) -> float:
        """The only value of a query."""
        values = [sample.value for sample in self.ask(query)]
        assert len(values) == 1, f"{query}: {values}"
        return values[0]

    def wait_for_number(self, query: str, low: float, high: float, within: float) -> float:
        """Wait until the query's only value is in the range; returns it."""

        def is_reached() -> bool:
            values = [sample.value for sample in self.ask(query)]
            return len(values) == 1 and not math.isnan(values[0]) and low <= values[0] <= high

        wait_for(
            is_reached,
            within=within,
            describe=lambda: f"{query} between {low:g} and {high:g}: {self.ask(query)}",
        )
        return self.number(query)

    def alerts(self) -> dict[str, str]:
        """Name and state (pending, firing) of each alert that is active."""
        return {
            each["labels"]["alertname"]: str(each["state"])
            for each in self._get("/api/v1/alerts", {})["alerts"]
        }

    def _get(self, path: str, parameters: dict[str, str]) -> dict[str, Any]:
        response = httpx.get(self._url + path, params=parameters, timeout=_REQUEST_SECONDS)
        body = response.json()
        assert body["status"] == "success", f"{parameters}: {body}"
        found: dict[str, Any] = body["data"]
        return found

    def _targets(self) -> str:
        active = self._get("/api/v1/targets", {})["activeTargets"]
        return f"targets are scraped: {[(at['scrapeUrl'], at['lastError']) for at in active]}"


def _settings(targets: Sequence[str], rules: Sequence[Path]) -> dict[str, Any]:
    pods = [
        {"targets": [target], "labels": {**LABELS, "kubernetes_pod_name": f"my-mirror-{at}"}}
        for at, target in enumerate(targets)
    ]
    # The job of deploy/monitoring/prometheus.yml, which our alerts name.
    job = {"job_name": "sparkmirror", "static_configs": pods}
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [job],
    }


def promtool(*words: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool; `given` is its standard input."""
    command = ["promtool", *(str(word) for word in words)]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=60, check=False
    )
