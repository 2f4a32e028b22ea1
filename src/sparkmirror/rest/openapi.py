"""The OpenAPI 3.1 description of the REST API, made from the table of routes.

Runs on: worker. Pure. Served as /openapi.json, which genuine Connect does not have.
"""

from __future__ import annotations

import re
from typing import Any

from sparkmirror import __version__
from sparkmirror.rest.request import RestOptions
from sparkmirror.rest.routes import Route, served_routes

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_TASK_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_FLAG: Schema = {"type": "boolean"}
_OPTIONAL_TEXT: Schema = {"type": ["string", "null"]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _map(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _entity(optional: Schema | None = None, /, **members: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**members, **(optional or {})},
        "required": list(members),
    }


_STATE = _entity(
    {"trace": _TEXT, "version": _TEXT},
    state={"enum": ["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING", "STOPPED"]},
    worker_id=_TEXT,
)
_TASK_ID = _entity(connector=_TEXT, task=_NUMBER)
_ANY_MAP: Schema = {"type": ["object", "null"]}

_SCHEMAS: dict[str, Schema] = {
    "Error": _entity(error_code=_NUMBER, message=_OPTIONAL_TEXT),
    "Message": _entity(message=_TEXT),
    # docs/monitoring.md describes the other members of each.
    "View": {"type": "object"},
    "Root": _entity(version=_TEXT, commit=_TEXT, kafka_cluster_id=_OPTIONAL_TEXT),
    "Health": _entity(status={"enum": ["healthy", "starting", "unhealthy"]}, message=_TEXT),
    "Config": _map({"type": ["string", "null", "number", "boolean"]}),
    "ConnectorInfo": _entity(name=_TEXT, config=_ref("Config"), tasks=_list(_TASK_ID), type=_TEXT),
    "Connectors": {
        "anyOf": [
            _list(_TEXT),
            _map(_entity({"status": _ref("ConnectorStatus"), "info": _ref("ConnectorInfo")})),
        ]
    },
    "CreateRequest": {
        **_entity(
            {"initial_state": {"enum": ["RUNNING", "PAUSED", "STOPPED", None]}},
            name=_TEXT,
            config=_ref("Config"),
        ),
        "additionalProperties": False,
    },
    "TaskStatus": {**_STATE, "properties": {"id": _NUMBER, **_STATE["properties"]}},
    "ConnectorStatus": _entity(
        name=_TEXT, connector=_STATE, tasks=_list(_ref("TaskStatus")), type=_TEXT
    ),
    "Tasks": _list(_entity(id=_TASK_ID, config=_map(_TEXT))),
    "Topics": _map(_entity(topics=_list(_TEXT))),
    "Offsets": {
        **_entity(
            offsets=_list(
                {
                    **_entity(partition={"type": "object"}, offset=_ANY_MAP),
                    "additionalProperties": False,
                }
            )
        ),
        "additionalProperties": False,
    },
    "Plugins": _list(_entity({"version": _TEXT}, **{"class": _TEXT, "type": _TEXT})),
    "Definition": _entity(
        name=_TEXT,
        type=_TEXT,
        required=_FLAG,
        default_value=_OPTIONAL_TEXT,
        importance=_TEXT,
        documentation=_OPTIONAL_TEXT,
        group=_OPTIONAL_TEXT,
        order_in_group=_NUMBER,
        width=_TEXT,
        display_name=_TEXT,
        dependents=_list(_TEXT),
    ),
    "Definitions": _list(_ref("Definition")),
    "Validation": _entity(
        name=_TEXT,
        error_count=_NUMBER,
        groups=_list(_TEXT),
        configs=_list(
            _entity(
                definition={"anyOf": [_ref("Definition"), {"type": "null"}]},
                value=_entity(
                    name=_TEXT,
                    value=_OPTIONAL_TEXT,
                    recommended_values=_list(_OPTIONAL_TEXT),
                    errors=_list(_TEXT),
                    visible=_FLAG,
                ),
            )
        ),
    ),
    "LoggerLevel": _entity(level=_OPTIONAL_TEXT, last_modified={"type": ["integer", "null"]}),
    "Loggers": _map(_ref("LoggerLevel")),
    "LoggerNames": _list(_TEXT),
    "Level": _entity(
        level={"enum": ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"]}
    ),
}
# Names that a URI can contain: Jetty rejects the others.
_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "pattern": r"^[^\x00-\x20\x7f%/\\.;]+$",
}
# As in Java: 'true' in any case is true, everything else is false; unknown words mean nothing.
_LOOSE_FLAG: Schema = {"type": ["boolean", "string"], "default": False}
_QUERY_SCHEMAS: dict[str, Schema] = {
    "expand": {**_list(_TEXT), "description": "status and info are known"},
    "scope": {"type": "string", "default": "worker", "description": "worker or cluster"},
    "connectorsOnly": {**_LOOSE_FLAG, "default": True},
    "version": _TEXT,
    "flow": {**_TEXT, "description": "source->target"},
    "topic": _TEXT,
    "group": _TEXT,
    "name": {**_TEXT, "description": "a connector"},
    "prefix": {**_TEXT, "description": "/source/target in dedicated mode"},
    "source": {**_TEXT, "description": "alias of a cluster"},
    "target": {**_TEXT, "description": "alias of a cluster"},
    "q": {**_TEXT, "description": "part of a name, or /pattern/"},
    "state": _TEXT,
    "sort": _TEXT,
    "dir": {**_TEXT, "description": "asc or desc"},
    "offset": {"type": "integer", "minimum": 0, "default": 0},
    "limit": {"type": "integer", "minimum": 0, "default": 200},
    "range": {**_TEXT, "description": "15m, 1h, 6h or 24h"},
    "kind": {**_TEXT, "description": "kinds of events, separated by commas"},
    "since": {**_TEXT, "description": "id of an event: only later ones"},
}
_MEANINGS = {
    200: "Done",
    201: "Created",
    202: "Accepted; takes effect soon",
    204: "Done; no content",
    400: "The request is invalid",
    403: "The worker's settings do not allow it",
    404: "No such connector, task, plugin, logger, flow, topic or group",
    409: "It exists already, or the workers are choosing a leader: retry",
    503: "The worker is starting",
}


def describe(options: RestOptions) -> Schema:
    paths: dict[str, Schema] = {}
    for route in served_routes(options):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    description = {
        "openapi": "3.1.0",
        "info": {"title": "sparkmirror worker", "version": __version__},
        "paths": paths,
        "components": {"schemas": _SCHEMAS},
    }
    return description if options.users is None else _with_login(description)


def _with_login(description: Schema) -> Schema:
    schemes = {"login": {"type": "http", "scheme": "basic"}}
    components = description["components"] | {"securitySchemes": schemes}
    return description | {"components": components, "security": [{"login": []}]}


def _operation(route: Route) -> Schema:
    operation: Schema = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route),
    }
    if route.body:
        operation["requestBody"] = {"required": True, **_content(route.body)}
    return operation


def _path_parameters(route: Route) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _TASK_NUMBER if name == "task" else _NAME,
        }
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _query_parameters(route: Route) -> list[Schema]:
    return [
        {"name": name, "in": "query", "schema": _QUERY_SCHEMAS.get(name, _LOOSE_FLAG)}
        for name in route.query
    ]


def _responses(route: Route) -> Schema:
    first = route.success[0] if route.result else None
    responses: Schema = {
        str(status): {"description": _MEANINGS[status]} for status in route.success
    }
    for status in route.success:
        if status in (first, 201):
            responses[str(status)] |= _content(route.result)
    for status in route.errors:
        shape = "Health" if route.path == "/health" else "Error"
        responses[str(status)] = {"description": _MEANINGS[status], **_content(shape)}
    responses["default"] = {"description": "Any other failure", **_content("Error")}
    for key in ("400", "default"):
        # The response to an unusable URI is a page.
        if key in responses:
            responses[key]["content"]["text/html"] = {"schema": _TEXT}
    return responses


def _content(schema: str) -> Schema:
    return {"content": {"application/json": {"schema": _ref(schema)}}}
