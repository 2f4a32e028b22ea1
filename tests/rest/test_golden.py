"""The recorded exchanges, replayed on a herder in memory: all that the REST layer decides."""

from __future__ import annotations

from tests.golden_rest.exchange import load_exchanges
from tests.golden_rest.replay import replay
from tests.rest.conftest import Serve
from tests.rest.fake_herder import FakeHerder


def test_answers_are_those_of_a_genuine_worker(serve: Serve, herder: FakeHerder) -> None:
    differences = replay(serve(herder), load_exchanges())
    assert [str(difference) for difference in differences] == []
