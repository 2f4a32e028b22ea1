"""What a source connector needs to know of its flow. Runs on: worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sparkmirror.config.mirror_configs import SourceConfig
from sparkmirror.config.worker_config import WorkerConfig
from sparkmirror.types import FlowName


class SourceFlow(Protocol):
    """A flow of an mm2 file, or of a connector that a Connect worker was given."""

    @property
    def name(self) -> FlowName: ...
    @property
    def worker(self) -> WorkerConfig: ...
    @property
    def source(self) -> SourceConfig: ...
    @property
    def worker_props(self) -> Mapping[str, str]: ...
