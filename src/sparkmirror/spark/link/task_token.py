"""What a Spark job carries: only how its task finds and recognises the worker.

Runs on: worker (writes it) and executor (reads it).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskToken:
    """Where the worker listens, how both prove who they are, and who the task is.

    `fingerprint` is that of the worker's certificate; `secret` is this task's alone, and new at
    every start of a worker.
    """

    host: str
    port: int
    secret: str
    fingerprint: str
    task: str

    def __repr__(self) -> str:
        return f"TaskToken({self.host}:{self.port}, task {self.task})"
