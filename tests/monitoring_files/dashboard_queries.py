"""The queries of docs/dashboards.md and of our dashboard, as Prometheus understands them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.deploy.files import DEPLOY, ROOT
from tests.monitoring_files.prometheus_server import LABELS

PAGE = ROOT / "docs" / "dashboards.md"
GRAFANA = DEPLOY / "monitoring" / "grafana"
OURS = GRAFANA / "sparkmirror.json"

# The words of the page, and who has values for such a query while all is well.
WITH_GENUINE = ("works", "differs", "missing")
HERE = ("works", "differs", "more")
NOWHERE = ("quiet", "elsewhere", "absent")
STATES = {*WITH_GENUINE, *HERE, *NOWHERE}
# These explain themselves; the others need a note.
PLAIN = ("works", "quiet")

_ROW = re.compile(r"^\| (?P<panel>[^|]+) \| `(?P<query>[^`]+)` \| (?P<state>[^|]+) \|$", re.M)
_STRIMZI = ",".join(
    f'{name}="{LABELS[name]}"' for name in ("strimzi_io_kind", "strimzi_io_cluster")
)
# They differ in a label that Prometheus adds; the tests ask both of the same process.
_SELECTORS = {"$mm2": _STRIMZI, "$connect": _STRIMZI}
_VARIABLES = {"$source": ".*", "$target": ".*", "$topic": ".*", "$__rate_interval": "1m"}


@dataclass(frozen=True, slots=True)
class DashboardQuery:
    """`state` is a word of `STATES`; `note` follows it."""

    panel: str
    query: str
    state: str = "works"
    note: str = ""


def listed_queries() -> list[DashboardQuery]:
    """The rows of docs/dashboards.md, whose selectors are written out."""
    found = []
    for row in _ROW.finditer(PAGE.read_text("ascii")):
        state, _, note = row["state"].partition(": ")
        found.append(DashboardQuery(row["panel"], _replace(row["query"], _SELECTORS), state, note))
    return found


def panel_queries(dashboard: str) -> list[DashboardQuery]:
    """All of a dashboard file in deploy/monitoring/grafana, with every variable set to All."""
    return [
        DashboardQuery(panel["title"], _replace(target["expr"], _VARIABLES))
        for panel in _panels(json.loads((GRAFANA / dashboard).read_text("ascii")))
        for target in panel.get("targets", ())
    ]


def is_for_quoted_names(query: str) -> bool:
    """Whether it selects names in quotation marks.

    JMX writes `"a->b.MirrorSourceConnector"`, and in dedicated mode MirrorSourceConnector without.
    """
    return r'~"\"' in query


def metric_names(query: str) -> set[str]:
    """What looks like a metric of ours or of Connect's."""
    return set(re.findall(r"\b(?:sparkmirror|kafka|jvm|process)_[a-z0-9_]+", query))


def _panels(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in part.get("panels", ()):
        yield panel
        yield from _panels(panel)


def _replace(query: str, words: dict[str, str]) -> str:
    for word, text in words.items():
        query = query.replace(word, text)
    return query
