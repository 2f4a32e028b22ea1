"""The table of all endpoints; no request matches two rows, so their order has no meaning.

Runs on: worker. connect_api.py routes by it and openapi.py describes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from sparkmirror.rest import connectors_resource as connectors
from sparkmirror.rest import views_resource as views
from sparkmirror.rest import worker_resource as worker
from sparkmirror.rest.exception_mapper import Unmatched
from sparkmirror.rest.request import ResourceMethod, RestOptions
from sparkmirror.rest.transport.uris import java_set_order, match_path, split_path

_ONE = "/connectors/{connector}"
_TASK = "/connectors/{connector}/tasks/{task}"
_PLUGIN = "/connector-plugins/{plugin}"
_LOGGER = "/admin/loggers/{logger}"
VIEWS = "/sparkmirror/"
STREAM = f"{VIEWS}stream"
FIGURES = f"{VIEWS}figures"


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    `result` and `body` name schemas of openapi.py; `success` are the statuses of success, the first
    with `result`; `query` are the parameters besides `forward`; `reads`: it changes nothing.
    """

    method: str
    path: str
    handler: ResourceMethod
    summary: str
    success: tuple[int, ...] = (200,)
    result: str = ""
    body: str = ""
    query: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()

    @property
    def reads(self) -> bool:
        return self.method == "GET" or self.path.endswith("/validate")

    @property
    def consumes_json(self) -> bool:
        """Whether a body of another type is rejected; the root resource accepts any."""
        return self.path not in ("/", "/health")

    @property
    def produces_json(self) -> bool:
        """Whether clients must accept JSON."""
        return self.path not in ("/metrics", STREAM)

    @property
    def is_early(self) -> bool:
        """Whether a worker that is still starting can handle it."""
        return self.path in ("/", "/health", "/metrics") or self.path.startswith(VIEWS)

    @property
    def is_internal(self) -> bool:
        """Whether only workers of genuine Connect request it."""
        return self.handler in (connectors.refuse_tasks, connectors.refuse_fence)

    @property
    def is_admin(self) -> bool:
        return self.path.startswith("/admin")


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", "/", worker.show_root, "Get the worker's version and its Kafka cluster id",
          result="Root"),
    Route("GET", "/health", worker.show_health, "Get the worker's health",
          result="Health", errors=(503,)),

    Route("GET", "/connectors", connectors.list_connectors,
          "List connectors, optionally with status and settings",
          result="Connectors", query=("expand",)),
    Route("POST", "/connectors", connectors.create_connector, "Create a connector",
          (201,), "ConnectorInfo", "CreateRequest", errors=(400, 409)),
    Route("GET", _ONE, connectors.show_connector, "Get a connector's settings and tasks",
          result="ConnectorInfo", errors=(404,)),
    Route("DELETE", _ONE, connectors.delete_connector, "Delete a connector",
          (204,), errors=(404, 409)),
    Route("GET", _ONE + "/config", connectors.show_config, "Get a connector's settings",
          result="Config", errors=(404,)),
    Route("PUT", _ONE + "/config", connectors.put_config,
          "Create a connector or replace its settings",
          (200, 201), "ConnectorInfo", "Config", errors=(400, 409)),
    Route("PATCH", _ONE + "/config", connectors.patch_config,
          "Change some settings of a connector; null deletes a setting",
          result="ConnectorInfo", body="Config", errors=(400, 404, 409)),
    Route("GET", _ONE + "/status", connectors.show_status,
          "Get the states of a connector and its tasks", result="ConnectorStatus", errors=(404,)),
    Route("POST", _ONE + "/restart", connectors.restart_connector,
          "Restart a connector, its tasks, or only what has failed",
          (202, 204), "ConnectorStatus", query=("includeTasks", "onlyFailed"),
          errors=(404, 409)),
    Route("PUT", _ONE + "/pause", connectors.pause_connector, "Pause a connector and its tasks",
          (202,), errors=(404, 409)),
    Route("PUT", _ONE + "/resume", connectors.resume_connector,
          "Resume a paused or stopped connector", (202,), errors=(404, 409)),
    Route("PUT", _ONE + "/stop", connectors.stop_connector,
          "Stop a connector and remove its tasks", (204,), errors=(404, 409)),

    Route("GET", _ONE + "/tasks", connectors.list_tasks,
        "List a connector's tasks and their settings",
          result="Tasks", errors=(404,)),
    Route("POST", _ONE + "/tasks", connectors.refuse_tasks,
          "Between genuine Connect workers only", (204,), errors=(400, 403)),
    Route("PUT", _ONE + "/fence", connectors.refuse_fence,
          "Between genuine Connect workers only", (204,), errors=(400, 403)),
    Route("GET", _TASK + "/status", connectors.show_task_status, "Get a task's state",
          result="TaskStatus", errors=(404,)),
    Route("POST", _TASK + "/restart", connectors.restart_task, "Restart a task",
          (204,), errors=(404, 409)),

    Route("GET", _ONE + "/topics", connectors.list_topics,
          "List the topics that a connector has written to", result="Topics", errors=(403,)),
    Route("PUT", _ONE + "/topics/reset", connectors.reset_topics,
          "Reset the list of topics that a connector has written to",
          (202,), errors=(403, 404, 409)),
    Route("GET", _ONE + "/offsets", connectors.show_offsets,
          "Get a connector's offsets in its source partitions", result="Offsets", errors=(404,)),
    Route("PATCH", _ONE + "/offsets", connectors.alter_offsets,
          "Change offsets of a stopped connector",
          result="Message", body="Offsets", errors=(400, 404, 409)),
    Route("DELETE", _ONE + "/offsets", connectors.reset_offsets,
          "Delete all offsets of a stopped connector",
          result="Message", errors=(400, 404, 409)),

    Route("GET", "/connector-plugins", worker.list_plugins, "List connector plugins",
          result="Plugins", query=("connectorsOnly",)),
    Route("GET", _PLUGIN + "/config", worker.show_plugin, "List the settings of a plugin",
          result="Definitions", query=("version",), errors=(400, 404)),
    Route("PUT", _PLUGIN + "/config/validate", worker.validate_config,
          "Validate a connector configuration",
          result="Validation", body="Config", errors=(400,)),

    Route("GET", "/admin/loggers", worker.list_loggers, "List loggers and their levels",
          result="Loggers"),
    Route("GET", _LOGGER, worker.show_logger, "Get a logger's level",
          result="LoggerLevel", errors=(404,)),
    Route("PUT", _LOGGER, worker.set_logger, "Change the level of a logger and its children",
          (200, 204), "LoggerNames", "Level", query=("scope",), errors=(400, 404)),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Match:
    """The methods of a path, and the values of the names in it."""

    routes: Mapping[str, Route]
    params: Mapping[str, str]

    @property
    def allowed(self) -> list[str]:
        head = ["HEAD"] if "GET" in self.routes else []
        return java_set_order([*self.routes, *head, "OPTIONS"])

    def route(self, method: str) -> Route:
        """HEAD is handled like GET; raises Unmatched (405)."""
        route = self.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise Unmatched(HTTPStatus.METHOD_NOT_ALLOWED)
        return route


class Router:
    """Finds the route of a request among those that a listener serves."""

    def __init__(self, options: RestOptions) -> None:
        by_path: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in served_routes(options):
            by_path.setdefault(split_path(route.path), {})[route.method] = route
        self._paths = list(by_path.items())

    def match(self, segments: Sequence[str]) -> Match:
        """Raises Unmatched (404) if there is no such path."""
        for template, routes in self._paths:
            params = match_path(template, segments)
            if params is not None:
                return Match(routes, params)
        raise Unmatched(HTTPStatus.NOT_FOUND)


# Genuine workers have none: an agent in their JVM serves it on a port of its own.
METRICS = Route("GET", "/metrics", worker.show_metrics, "Get metrics in the format of Prometheus")


_PAGED = ("flow", "q", "state", "offset", "limit")
_SORTED = (*_PAGED, "sort", "dir")
# fmt: off
VIEW_ROUTES: tuple[Route, ...] = (
    Route("GET", VIEWS + "overview", views.show_overview,
          "Get the state of all flows, problems first", result="View"),
    Route("GET", VIEWS + "flows", views.show_flows, "List flows with state and lag", result="View"),
    Route("GET", VIEWS + "flow", views.show_flow, "Get a flow and its slowest partitions",
          result="View", query=("flow",), errors=(400, 404)),
    Route("GET", VIEWS + "history", views.show_history,
          "Get throughput, lag and latency of a flow over time",
          result="View", query=("flow", "range"), errors=(400, 404)),
    Route("GET", VIEWS + "topics", views.show_topics, "List mirrored topics",
          result="View", query=_SORTED, errors=(400, 404)),
    Route("GET", VIEWS + "lag", views.show_lag, "List partitions, the furthest behind first",
          result="View", query=_PAGED, errors=(400, 404)),
    Route("GET", VIEWS + "partitions", views.show_partitions,
          "List the partitions of a mirrored topic",
          result="View", query=("flow", "topic"), errors=(400, 404)),
    Route("GET", VIEWS + "unmirrored", views.show_unmirrored,
          "List topics that are not mirrored, with every rule in order",
          result="View", query=_PAGED, errors=(400, 404)),
    Route("GET", VIEWS + "groups", views.show_groups,
          "List consumer groups with what a failover would re-read",
          result="View", query=_SORTED, errors=(400, 404)),
    Route("GET", VIEWS + "group", views.show_group, "List the partitions of a consumer group",
          result="View", query=("flow", "group"), errors=(400, 404)),
    Route("GET", VIEWS + "connectors", views.show_all_connectors,
          "List connectors and tasks with reasons and remedies",
          result="View", query=("flow",), errors=(404,)),
    Route("GET", VIEWS + "connector", views.show_one_connector,
          "Get a connector with its settings; secrets are hidden",
          result="View", query=("name", "prefix"), errors=(400, 404)),
    Route("GET", VIEWS + "events", views.show_events, "List events, newest first",
          result="View", query=("flow", "q", "kind", "since", "limit"), errors=(400,)),
    Route("GET", VIEWS + "failover", views.show_failover,
          "Get whether consumers and producers could move now, and what it would cost",
          result="View", query=("source", "target"), errors=(400, 404)),
    Route("GET", STREAM, views.open_stream,
          "Follow the overview as server-sent events", errors=(503,)),
    Route("GET", FIGURES, views.show_figures,
          "Get the figures of this worker alone, for other workers", result="View"),
)
# fmt: on


def served_routes(options: RestOptions) -> list[Route]:
    found = [route for route in ROUTES if (options.admin if route.is_admin else options.main)]
    found += [] if options.metrics is None else [METRICS]
    return found if options.views is None else [*found, *VIEW_ROUTES]
