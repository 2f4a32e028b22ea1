"""Metrics, views and the page on addresses of their own (`sparkmirror.metrics.listeners`).

Runs on: worker, in the event loop of its own REST server. Users and limits are those of the REST
API: what it shows is what every user of that may read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from sparkmirror.connect.entities import Herder
from sparkmirror.rest.connect_api import ConnectApi
from sparkmirror.rest.request import RestOptions


def metrics_app(options: RestOptions) -> ConnectApi:
    """Serves what `options` has to show; no path asks a herder for anything."""
    return ConnectApi(cast("Herder", None), replace(options, main=False, admin=False))
