"""Handles requests about connectors: /connectors and all below it.

Runs on: worker, on a thread of the REST server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparkmirror.connect.entities import Json, RequestError, TargetState
from sparkmirror.rest.entities.request_bodies import (
    RequestedConfig,
    check_task_configs,
    parse_config,
    parse_create,
    parse_offsets,
    parse_patch,
    refuse_null,
)
from sparkmirror.rest.entities.response_bodies import (
    info_json,
    offsets_json,
    status_json,
    task_status_json,
    tasks_json,
)
from sparkmirror.rest.request import RestRequest, RestResponse

_EXPANSIONS = {
    "status": lambda call, name: status_json(call.herder.connector_status(name)),
    "info": lambda call, name: info_json(call.herder.connector_info(name)),
}


def list_connectors(call: RestRequest) -> RestResponse:
    names = call.herder.connectors()
    wanted = call.query.get("expand")
    if wanted is None:
        return RestResponse(body=list(names))
    known = [kind for kind in dict.fromkeys(wanted) if kind in _EXPANSIONS]
    return RestResponse(body=dict(_expand_all(call, names, known)))


def _expand_all(
    call: RestRequest, names: Sequence[str], kinds: list[str]
) -> Iterator[tuple[str, Json]]:
    for name in names:
        try:
            yield name, {kind: _EXPANSIONS[kind](call, name) for kind in kinds}
        except RequestError as error:
            # Omit it: it has just been deleted, or has no status yet.
            if error.status != 404:
                raise


def create_connector(call: RestRequest) -> RestResponse:
    request = parse_create(call.body)
    config = {"name": request.name, **_with_name(request.name, request.config)}
    info = call.herder.create(request.name, config, request.initial_state)
    return RestResponse(201, info_json(info), headers=call.location(request.name))


def show_connector(call: RestRequest) -> RestResponse:
    return RestResponse(body=info_json(call.herder.connector_info(call.connector)))


def show_config(call: RestRequest) -> RestResponse:
    return RestResponse(body=dict(call.herder.connector_info(call.connector).config))


def put_config(call: RestRequest) -> RestResponse:
    config = _with_name(call.connector, parse_config(call.body))
    created, info = call.herder.put_config(call.connector, config)
    if created:
        return RestResponse(201, info_json(info), headers=call.location(call.connector))
    return RestResponse(body=info_json(info))


def _with_name(name: str, config: RequestedConfig) -> RequestedConfig:
    """Settings always contain the connector's name; a different one is rejected."""
    included = config.get("name")
    if included is not None and included != name:
        raise RequestError(
            400,
            f"Connector name configuration ({included}) doesn't match"
            f" connector name in the URL ({name})",
        )
    return {**config, "name": name}


def patch_config(call: RestRequest) -> RestResponse:
    patch = parse_patch(call.body)
    if patch is None:
        call.herder.connector_info(call.connector)  # an unknown connector is reported first
        refuse_null("java.util.Map.forEach(java.util.function.BiConsumer)", "patch")
    return RestResponse(body=info_json(call.herder.patch_config(call.connector, patch)))


def delete_connector(call: RestRequest) -> RestResponse:
    call.herder.delete(call.connector)
    return RestResponse(204)


def show_status(call: RestRequest) -> RestResponse:
    return RestResponse(body=status_json(call.herder.connector_status(call.connector)))


def restart_connector(call: RestRequest) -> RestResponse:
    expected = call.herder.restart_connector(
        call.connector,
        include_tasks=call.flag("includeTasks"),
        only_failed=call.flag("onlyFailed"),
    )
    return RestResponse(204) if expected is None else RestResponse(202, status_json(expected))


def pause_connector(call: RestRequest) -> RestResponse:
    call.herder.set_target_state(call.connector, TargetState.PAUSED)
    return RestResponse(202)


def resume_connector(call: RestRequest) -> RestResponse:
    call.herder.set_target_state(call.connector, TargetState.STARTED)
    return RestResponse(202)


def stop_connector(call: RestRequest) -> RestResponse:
    call.herder.set_target_state(call.connector, TargetState.STOPPED)
    return RestResponse(204)


def list_tasks(call: RestRequest) -> RestResponse:
    configs = call.herder.task_configs(call.connector)
    return RestResponse(body=tasks_json(call.connector, configs))


def show_task_status(call: RestRequest) -> RestResponse:
    return RestResponse(body=task_status_json(call.herder.task_status(call.connector, call.task)))


def restart_task(call: RestRequest) -> RestResponse:
    call.herder.restart_task(call.connector, call.task)
    return RestResponse(204)


def list_topics(call: RestRequest) -> RestResponse:
    _check_tracking(call)
    topics = list(call.herder.active_topics(call.connector))
    return RestResponse(body={call.connector: {"topics": topics}})


def reset_topics(call: RestRequest) -> RestResponse:
    _check_tracking(call)
    if not call.options.topic_tracking_reset:
        raise RequestError(403, "Topic tracking reset is disabled.")
    call.herder.reset_active_topics(call.connector)
    return RestResponse(202)


def _check_tracking(call: RestRequest) -> None:
    if not call.options.topic_tracking:
        raise RequestError(403, "Topic tracking is disabled.")


def show_offsets(call: RestRequest) -> RestResponse:
    return RestResponse(body=offsets_json(call.herder.offsets(call.connector)))


def alter_offsets(call: RestRequest) -> RestResponse:
    rows = parse_offsets(call.body)
    known = [(partition, offset) for partition, offset in rows if partition is not None]
    if any(partition is None and offset is not None for partition, offset in rows):
        call.herder.connector_info(call.connector)  # an unknown connector is reported first
        raise RequestError(500, "Source partitions may not be null")
    return RestResponse(body={"message": call.herder.alter_offsets(call.connector, known)})


def reset_offsets(call: RestRequest) -> RestResponse:
    return RestResponse(body={"message": call.herder.reset_offsets(call.connector)})


def refuse_tasks(call: RestRequest) -> RestResponse:
    """Task configs from a genuine worker; here only the leader makes them."""
    check_task_configs(call.body)
    return refuse_fence(call)


def refuse_fence(call: RestRequest) -> RestResponse:
    """Only genuine workers send this request, so its signature cannot be ours."""
    if call.is_signed:
        raise RequestError(403, "Internal request contained invalid signature.")
    raise RequestError(400, "Internal request missing required signature")
