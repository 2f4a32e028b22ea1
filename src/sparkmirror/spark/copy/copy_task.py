"""A connector task as a Spark task: connects to its worker, gets settings and positions, copies.

Runs on: executor, in a Python worker process of Spark. The Spark job carries only `TaskToken`;
positions and settings come over the control link, so a task that Spark runs again after its
executor died starts at the position in the offsets topic, not where the job once began.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from types import FrameType

from sparkmirror.config.masking import mask
from sparkmirror.errors import KafkaError, MirrorError
from sparkmirror.spark.copy.copy_loop import CopyLoop
from sparkmirror.spark.copy.heap import keep_freed_memory
from sparkmirror.spark.link.client import LinkClient, open_link
from sparkmirror.spark.link.files import FILES, provide_files
from sparkmirror.spark.link.frames import LinkMessage
from sparkmirror.spark.link.lease import LEASE, Lease
from sparkmirror.spark.link.task_log import encode_log
from sparkmirror.spark.link.task_token import TaskToken
from sparkmirror.spark.task_config import decode_assigned, parse_start
from sparkmirror.types import TopicPartition
from sparkmirror.wire import secret_files
from sparkmirror.wire.net.event_loop import EventLoop
from sparkmirror.wire.net.outages import OUTAGES

log = logging.getLogger(__name__)

NUMBERS_SECONDS = 1.0
LEASE_SECONDS = 0.25
NO_RESPONSE = "no response from the worker"
MOST_PROBLEMS = 10


class LinkLog(logging.Handler):
    """Sends warnings to the worker, whose log is the one that operators read."""

    def __init__(self, link: LinkClient) -> None:
        super().__init__(logging.WARNING)
        self._link = link

    def emit(self, record: logging.LogRecord) -> None:
        """Called by logging."""
        self._link.send(encode_log(record))


def run_copy_task(tokens: Iterator[TaskToken]) -> Iterator[str]:
    """What Spark calls, with the one token of the job; yields how it ended."""
    # Ctrl-C in a terminal reaches every process of the group, SIGTERM of some supervisors every
    # process of the service: only the worker decides when a task stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Batches make no reference cycles: looking for them often is wasted time.
    gc.set_threshold(100_000, 50, 50)
    # Silent brokers are reported with the partitions that wait for them (problems).
    OUTAGES.is_quiet = True
    keep_freed_memory()
    for token in tokens:
        yield copy_until_stopped(token)


def copy_until_stopped(token: TaskToken) -> str:
    """One attempt of one task."""
    link = LinkClient(open_link(token))
    handler = LinkLog(link)
    logger = logging.getLogger("sparkmirror")
    logger.addHandler(handler)
    try:
        return CopyTask(link).run()
    # One of the places with a broad except: Spark shows errors on its page and in its event log.
    except Exception as error:
        text = "".join(traceback.format_exception(error))
        if mask(text) == text:
            raise
        raise MirrorError(f"{type(error).__name__}: {mask(str(error))}") from None
    finally:
        logger.removeHandler(handler)
        link.close()
        # Spark keeps this process for other tasks, perhaps of other users.
        secret_files.forget_provided()


class CopyTask:
    """Ties the copy loop to the control link."""

    def __init__(self, link: LinkClient) -> None:
        self._link = link
        self._loop = EventLoop()
        self._lease = Lease()
        start_message = link.wait_for_start()
        provide_files(start_message)
        self._lease.renew(link.ask(self._lease.question(), LEASE))
        self._lease.check()
        self._loop.before_write = self._lease.check
        self._copy = CopyLoop(parse_start(start_message), self._loop)
        self._ended = "stopped"
        self._holding = False
        link.attach(self._loop, self._on_message, self._on_lost)
        self._report()
        self._watch_lease()

    def run(self) -> str:
        """Copy; returns why it ended."""
        # Spark's daemon sends it to all its processes when its JVM has ended: of a worker that was
        # killed, or of an executor. At once they would end without storing their positions.
        signal.signal(signal.SIGHUP, self._on_hangup)
        try:
            self._copy.run()
            self._link.send(self._copy.figures.take())
            self._link.send(self._numbers() | {"clean": self._copy.is_clean})
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            self._copy.close()
        return self._ended

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        """Called by the interpreter, between two steps of the loop."""
        del number, frame
        self._ended = "Spark has ended"
        self._copy.stop()

    def _on_message(self, message: LinkMessage) -> None:
        kind = message.get("type")
        if kind == "stop":
            self._copy.stop()
        elif kind == LEASE:
            self._lease.renew(message)
        elif kind == FILES:
            provide_files(message)
        elif kind == "assign":
            self._copy.assign(decode_assigned(message["assigned"]))
        elif kind == "revoke":
            self._copy.revoke(TopicPartition(topic, at) for topic, at in message["partitions"])
        else:
            log.warning("the worker sent a message of unknown type %r", kind)

    def _on_lost(self, error: KafkaError) -> None:
        """The worker may be starting another attempt: commit and end."""
        log.warning("%s", error)
        self._ended = "link lost"
        self._copy.stop()

    def _watch_lease(self) -> None:
        """Pause while the lease is not renewed: another worker may be copying."""
        if self._lease.is_silent:
            self._lease.check()
            log.warning("the worker does not respond: storing positions and stopping")
            self._ended = NO_RESPONSE
            self._copy.stop()
        elif self._lease.is_ending:
            self._hold()
        elif self._holding:
            self._holding = False
            log.warning("lease renewed by the worker: copying again")
            self._copy.resume()
        self._loop.call_later(LEASE_SECONDS, self._watch_lease)

    def _hold(self) -> None:
        if not self._holding:
            self._holding = True
            log.warning("no lease renewal from the worker: not copying until it comes")
        self._copy.hold(may_store=not self._lease.is_over)

    def _report(self) -> None:
        self._copy.log_problems()
        self._link.send(self._lease.question())
        self._link.send(self._numbers())
        self._link.send(self._copy.figures.take())
        self._loop.call_later(NUMBERS_SECONDS, self._report)

    def _numbers(self) -> LinkMessage:
        copy = self._copy
        problems = list(copy.problems.items())[:MOST_PROBLEMS]
        return {
            "type": "numbers",
            "pid": os.getpid(),
            "partitions": copy.metrics.partitions,
            "records": copy.metrics.records,
            "bytes": copy.metrics.bytes,
            "polled_records": copy.metrics.polled,
            "behind": copy.metrics.behind(),
            "lost_records": copy.lost_records,
            "skipped_records": copy.skipped_records,
            "slow": {reason.value: count for reason, count in copy.metrics.slow.items()},
            "waiting": len(copy.problems),
            "problems": {str(tp): problem.text for tp, problem in problems},
            "missing_topics": copy.missing.take(),
            "active_topics": copy.metrics.take_active_topics(),
            "clients": copy.client_figures(),
            "cpu_seconds": time.process_time(),
            "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
