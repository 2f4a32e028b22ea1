"""What may be under way on a line: it grows until the line gives no more."""

from __future__ import annotations

from sparkmirror.wire.net.line_estimate import LineEstimate

LEAST, MOST = 4_000_000, 80_000_000
SIZE = 500_000


def run(line: LineEstimate, now: float, seconds: float, trip: float, rate: float) -> float:
    """Keep as much under way as the estimate allows, on a line that gives `rate` at most."""
    end = now + seconds
    while now < end:
        window = line.window_bytes(LEAST, MOST)
        now += SIZE / min(rate, window / trip)
        line.note(max(trip, window / rate), SIZE, now)
    return now


def test_a_wide_line_is_full_after_some_round_trips() -> None:
    line = LineEstimate()
    line.begin(0.0)
    run(line, 0.0, 5 * 0.16, trip=0.16, rate=1e9)
    assert line.window_bytes(LEAST, MOST) == MOST


def test_a_narrow_line_is_not_filled_with_more_than_it_holds_for_long() -> None:
    line = LineEstimate()
    line.begin(0.0)
    run(line, 0.0, 30.0, trip=0.16, rate=20e6)
    assert line.window_bytes(1, MOST) < 6 * 20e6 * 0.16


def test_nothing_is_known_before_the_first_response() -> None:
    assert LineEstimate().window_bytes(LEAST, MOST) == LEAST


def test_a_longer_line_begins_with_more_of_it_under_way() -> None:
    begin = [LineEstimate(trip).window_bytes(LEAST, MOST) for trip in (0.0, 0.16, 0.4, 10.0)]
    assert begin == [LEAST, LEAST + int(0.16 * 80e6), LEAST + (28 << 20), LEAST + (28 << 20)]


def test_a_narrow_line_that_was_thought_wide_is_soon_known_to_be_narrow() -> None:
    line = LineEstimate(0.4)
    line.begin(0.0)
    run(line, 0.0, 30.0, trip=0.4, rate=5e6)
    assert line.window_bytes(1, MOST) < 6 * 5e6 * 0.4


def test_what_queues_on_a_narrow_line_is_no_reason_to_ask_for_more() -> None:
    line = LineEstimate(0.16)
    line.begin(0.0)
    run(line, 0.0, 300.0, trip=0.16, rate=5e6)
    assert line.window_bytes(1, MOST) < 6 * 5e6 * 0.16


def test_a_line_that_became_longer_gets_its_window_back() -> None:
    line = LineEstimate()
    line.begin(0.0)
    now = run(line, 0.0, 20.0, trip=0.04, rate=100e6)
    run(line, now, 60.0, trip=0.2, rate=100e6)
    assert line.window_bytes(LEAST, MOST) > 100e6 * 0.2
