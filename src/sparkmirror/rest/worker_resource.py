"""Handles requests about the worker itself: root, health, plugins, loggers.

Runs on: worker, on a thread of the REST server.
"""

from __future__ import annotations

import logging

from sparkmirror.connect.entities import RequestError
from sparkmirror.rest.entities.request_bodies import parse_config, parse_level
from sparkmirror.rest.entities.response_bodies import logger_json
from sparkmirror.rest.exception_mapper import NOT_FOUND
from sparkmirror.rest.request import RestRequest, RestResponse

log = logging.getLogger(__name__)

_HEALTH_STATUSES = {"healthy": 200, "starting": 503, "unhealthy": 500}
_SUFFIX = "Connector"
_LEVELS = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL")


def show_root(call: RestRequest) -> RestResponse:
    return RestResponse(body=call.herder.root())


def show_health(call: RestRequest) -> RestResponse:
    status, message = call.herder.health()
    return health_response(status, message)


def health_response(status: str, message: str) -> RestResponse:
    return RestResponse(_HEALTH_STATUSES[status], {"status": status, "message": message})


def show_metrics(call: RestRequest) -> RestResponse:
    if call.options.metrics is None:
        raise RequestError(404, NOT_FOUND)
    return call.options.metrics()


def list_plugins(call: RestRequest) -> RestResponse:
    connectors_only = call.flag("connectorsOnly", default=True)
    return RestResponse(body=list(call.herder.plugins(connectors_only=connectors_only)))


def show_plugin(call: RestRequest) -> RestResponse:
    definitions = call.herder.plugin_definitions(call.params["plugin"], call.text("version"))
    return RestResponse(body=list(definitions))


def validate_config(call: RestRequest) -> RestResponse:
    plugin = call.params["plugin"]
    config = parse_config(call.body)
    included = config.get("connector.class")
    if included is not None and not _alias(included).endswith(_alias(plugin)):
        raise RequestError(
            400, f"Included connector type {included} does not match request type {plugin}"
        )
    return RestResponse(body=call.herder.validate(plugin, config))


def _alias(plugin: str) -> str:
    return plugin.removesuffix(_SUFFIX) or plugin


def list_loggers(call: RestRequest) -> RestResponse:
    loggers = call.herder.loggers()
    return RestResponse(body={name: logger_json(loggers[name]) for name in sorted(loggers)})


def show_logger(call: RestRequest) -> RestResponse:
    name = _logger_name(call)
    logger = call.herder.logger(name)
    if logger is None:
        raise RequestError(404, f"Logger {name} not found.")
    return RestResponse(body=logger_json(logger))


def set_logger(call: RestRequest) -> RestResponse:
    level = parse_level(call.body)
    if not level:
        raise RequestError(500, "Illegal null or empty Level name.")
    if level.upper() not in _LEVELS:
        raise RequestError(404, f"invalid log level '{level}'.")
    cluster = _is_cluster(call.text("scope"))
    changed = call.herder.set_logger(_logger_name(call), level.upper(), cluster=cluster)
    return RestResponse(204) if changed is None else RestResponse(body=sorted(changed))


def _logger_name(call: RestRequest) -> str:
    name = call.params["logger"]
    return "root" if name.lower() == "root" else name


def _is_cluster(scope: str | None) -> bool:
    known = scope is None or scope.lower() in ("worker", "cluster")
    if not known:
        log.warning(
            "Received invalid scope '%s' in request to adjust logging level;"
            " will default to worker",
            scope,
        )
    return scope is not None and scope.lower() == "cluster"
