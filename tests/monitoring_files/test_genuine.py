"""The queries of docs/dashboards.md, asked of genuine MirrorMaker 2's own metrics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.embedded.ports import ReservedPort
from tests.monitoring_files.dashboard_queries import WITH_GENUINE, DashboardQuery, listed_queries
from tests.monitoring_files.prometheus_server import PrometheusServer
from tests.monitoring_files.replay import GENUINE, replay


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    folder = tmp_path_factory.mktemp("genuine")
    with (
        replay(GENUINE.read_text("ascii")) as genuine,
        ReservedPort() as port,
        PrometheusServer(folder, port, [genuine]) as server,
    ):
        server.wait_scraped()
        yield server


@pytest.mark.parametrize("row", listed_queries(), ids=lambda row: row.panel)
def test_it_has_values_if_the_page_says_so(
    prometheus: PrometheusServer, row: DashboardQuery
) -> None:
    found = prometheus.ask(row.query)
    assert bool(found) == (row.state in WITH_GENUINE), found
