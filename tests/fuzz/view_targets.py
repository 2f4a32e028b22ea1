"""What other workers send of their figures, and what clients ask of the views."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sparkmirror.errors import MirrorError
from sparkmirror.monitoring.gathering.worker_figures import (
    FlowRate,
    OddFigures,
    WorkerFigures,
    decode_figures,
    encode_figures,
)
from sparkmirror.monitoring.lag.partition_lag import PartitionState
from sparkmirror.monitoring.views.wording.paging import BadQuery, Query
from sparkmirror.rest.entities.request_bodies import encode_json
from tests.fuzz.target import Choices, Target
from tests.monitoring.views.fakes import FLOW, NAME, OPS, OTHER, Scene, lag


def run_figures(data: bytes) -> None:
    """Another worker's answer: read, or that worker is missing; every view works with it."""
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag()]
    scene.add_worker(OTHER)
    scene.peers.answers[OTHER] = data
    try:
        decode_figures(data)
        is_read = True
    except OddFigures:
        is_read = False
    found = scene.views.overview(OPS)
    encode_json(found)
    assert bool(found["missing"]) is not is_read
    scene.views.sample()
    encode_json(scene.views.topics(OPS, Query()))
    encode_json(scene.views.flow(OPS, FLOW))


def figures_seeds() -> Iterator[bytes]:
    rows = [lag(partition=1), lag("x", 2, PartitionState.FAILED, behind=None, seconds=None)]
    rates = [FlowRate(FLOW, NAME, 1.5, None, (1, 2, 3))]
    found = encode_figures(WorkerFigures("w:1", OTHER, 5, partitions=rows, rates=rates))
    yield json.dumps(found).encode()
    yield b"{}"


def run_filters(data: bytes) -> None:
    """A filter of a client: rows, or a text that says what is wrong."""
    choices = Choices(data)
    text = choices.rest().decode(errors="replace")
    scene = Scene()
    scene.add_source("orders-0")
    scene.lags.lags = [lag()]
    for query in (Query(q=text), Query(state=text), Query(sort=text), Query(flow=text)):
        try:
            encode_json(scene.views.topics(OPS, query))
            encode_json(scene.views.lag(OPS, query))
            encode_json(scene.views.events(OPS, query, [], text))
        except MirrorError as error:
            assert str(error)  # noqa: PT017  its text must not fail either
            assert isinstance(error, BadQuery) or query.flow  # noqa: PT017


def filters_seeds() -> Iterator[bytes]:
    for text in ("orders", "/^or.*s$/", "/(/", "/" + "(a*)*" * 20 + "/", "stuck", "a->b"):
        yield text.encode()


TARGETS = (
    Target("figures", run_figures, figures_seeds),
    Target("view-filters", run_filters, filters_seeds),
)
