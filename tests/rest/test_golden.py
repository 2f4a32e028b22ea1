"""The recorded exchanges, replayed on the real herder over topics and connectors in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.connect.herder_fakes import WORKER_ID
from tests.golden_rest.exchange import Exchange, load_exchanges
from tests.golden_rest.replay import Difference, Masks, replay
from tests.rest.golden_worker import GoldenWorker


def differences(
    golden_worker: GoldenWorker, exchanges: Sequence[Exchange] | None = None
) -> list[Difference]:
    masks = Masks(worker=WORKER_ID, wait_seconds=20.0)
    with golden_worker.served() as url:
        return replay(url, exchanges or load_exchanges(), masks, golden_worker.unsettled)


def test_responses_are_those_of_a_genuine_worker(golden_worker: GoldenWorker) -> None:
    exchanges = load_exchanges()
    assert len(exchanges) == 113
    assert [str(difference) for difference in differences(golden_worker, exchanges)] == []


def test_a_response_that_differs_in_one_value_is_found(golden_worker: GoldenWorker) -> None:
    """One of each kind of response: the program's response is compared, not the recording."""
    wrong = {
        1: ("4.3.1", "4.3.0"),
        9: ("tasks.max", "tasks.most"),
        13: ('"error_count":0', '"error_count":1'),
        26: ("400", "409"),
        38: ("stopped one", "stopped two"),
        54: ('"offset":99', '"offset":98'),
        73: ("STOPPED", "PAUSED"),
    }
    recorded = load_exchanges()
    changed = [
        replace(each, answer=each.answer.replace(*wrong[each.number], 1))
        if each.number in wrong
        else each
        for each in recorded
    ]
    assert [a.answer != b.answer for a, b in zip(recorded, changed, strict=True)].count(True) == 7
    assert [found.number for found in differences(golden_worker, changed)] == sorted(wrong)
