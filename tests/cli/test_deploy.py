"""The deploy commands as scripts use them, against the REST API of a worker without Kafka."""

from __future__ import annotations

import json
import socket

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sparkmirror.cli import main as cli
from sparkmirror.connect.entities import RequestError, State, TargetState
from sparkmirror.rest.rest_server import RestServer
from tests.cli.deploy_shell import CLASSES, MIRROR, Shell, settings

CPC, HBC, MSC = NAMES = tuple(f"mm2-{kind}-eu" for kind in CLASSES)


def test_deploy_creates_three_connectors_and_waits(shell: Shell) -> None:
    assert shell("deploy") == 0, shell.err
    assert shell.worker.connectors() == list(NAMES)
    lines = shell.out.splitlines()
    assert lines[:3] == [f"{name}: created" for name in NAMES]
    assert set(lines[3:-1]) == {
        f"{name}: {state}"
        for name in NAMES
        for state in ("no status yet", "RUNNING, 1 of 1 tasks RUNNING")
    }
    assert lines[-1].startswith("3 connectors RUNNING after ")
    config = shell.worker.connector_info(MSC).config
    assert (config["sync.topic.acls.enabled"], config["tasks.max"]) == ("false", "2")
    assert shell.err == ""


def test_running_connectors_are_skipped_and_changed_files_are_reported(shell: Shell) -> None:
    shell("deploy")
    shell.worker.asked.clear()
    assert shell("deploy") == 0
    assert shell.out.splitlines()[:3] == [f"{name}: already RUNNING, skipped" for name in NAMES]
    assert (shell.worker.writes, shell.err) == ([], "")
    path = shell.write("msc", topics="other", tasks_max=None)
    assert shell("deploy") == 0
    assert shell.err == (
        f"warning: {MSC} runs with settings that differ from {path} (tasks.max, topics); redeploy "
        "to use the file's\n"
    )
    assert shell.worker.writes == []


@pytest.mark.parametrize("verb", ["deploy", "redeploy"])
def test_each_missing_file_is_named_and_nothing_is_sent(shell: Shell, verb: str) -> None:
    for kind in ("cpc", "msc"):
        (shell.folder / f"mm2-{kind}-eu.json").unlink()
    bad = shell.write("hbc", name=None)
    assert shell(verb) == 1
    assert shell.err.splitlines() == [
        f"sparkmirror: {shell.folder}/mm2-cpc-eu.json: there is no such file",
        f"sparkmirror: {shell.folder}/mm2-msc-eu.json: there is no such file",
        f"sparkmirror: {bad}: name: missing; for example mm2-hbc-eu",
    ]
    assert shell.worker.asked == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"name": ', "no JSON: Expecting value: line 1 column 10", id="half a file"),
        pytest.param("[]", "no JSON object; write the settings as {...}", id="list"),
        pytest.param(
            '{"name": "a", "config": {}}', "config: this is the body of POST /connectors", id="POST"
        ),
        pytest.param('{"name": " "}', "name= : no name; for example mm2-msc-eu", id="blank name"),
        pytest.param('{"name": "a"}', "connector.class: missing; set it to", id="no class"),
        pytest.param(
            '{"name": "a", "connector.class": "MirrorHeartbeat"}',
            "connector.class=MirrorHeartbeat: another connector's file has this name; set it to "
            f"{MIRROR}MirrorSourceConnector",
            id="another connector",
        ),
        pytest.param(
            '{"name": "a", "connector.class": "MirrorSource", "topics": ["a"]}',
            "topics: not text, a number or a boolean",
            id="list as value",
        ),
        pytest.param(
            '{"name": "mm2-hbc-eu", "connector.class": "MirrorSource"}',
            "name=mm2-hbc-eu: another of the three files has the same name",
            id="same name",
        ),
        pytest.param(
            '{"name": "a", "connector.class": "MirrorSource", "x": NaN}',
            "not JSON that a worker accepts: ",
            id="not a number",
        ),
    ],
)
def test_wrong_file_is_rejected_before_anything_is_sent(
    shell: Shell, text: str, message: str
) -> None:
    path = shell.write_text("msc", text)
    assert shell("deploy") == 2
    assert f"sparkmirror: {path}: {message}" in shell.err
    assert shell.worker.asked == []


def test_worker_judges_all_files_before_anything_is_created(shell: Shell) -> None:
    source = shell.write("msc", tasks_max="many", offset_lag_max="-1")
    heartbeat = shell.write("hbc", source_cluster_alias=None)
    assert shell("deploy") == 2
    lines = shell.err.splitlines()
    assert any(line.startswith(f"sparkmirror: {source}: tasks.max: ") for line in lines)
    assert any(
        line.startswith(f"sparkmirror: {heartbeat}: source.cluster.alias: ") for line in lines
    )
    assert (shell.worker.writes, shell.out) == ([], "")


@pytest.mark.parametrize("verb", ["deploy", "redeploy"])
def test_a_misspelt_key_is_an_error_unless_forced(shell: Shell, verb: str) -> None:
    source = shell.write("msc", topcs="orders", retain_days="7")
    heartbeat = shell.write("hbc", **{"source.cluster.security.protokol": "SSL"})
    assert shell(verb) == 2
    assert shell.err.splitlines() == [
        (
            f"sparkmirror: {heartbeat}: source.cluster.security.protokol: unknown key; write "
            "source.cluster.security.protocol, or deploy with --force to ignore the key"
        ),
        (
            f"sparkmirror: {source}: topcs: unknown key; write topics, or deploy with --force to "
            "ignore the key"
        ),
    ]
    assert shell.worker.asked == []
    assert shell(verb, "--force") == 0, shell.err
    warnings = [line for line in shell.err.splitlines() if "not found" not in line]
    assert warnings == [
        (
            f"warning: {heartbeat}: source.cluster.security.protokol: unknown key, ignored; did "
            "you mean source.cluster.security.protocol?"
        ),
        f"warning: {source}: topcs: unknown key, ignored; did you mean topics?",
        f"warning: {source}: retain.days: unknown key, ignored",
    ]


def test_a_name_that_differs_from_its_file_is_warned_of(shell: Shell) -> None:
    path = shell.write("msc", name="other")
    assert shell("deploy") == 0
    assert shell.err == (
        f"warning: {path}: name=other: differs from the file's name; undeploy and status find the "
        "connector only while this file exists with this name, so use mm2-msc-eu\n"
    )


@pytest.mark.parametrize("how", ["file gone", "name changed"])
def test_undeploy_names_what_it_leaves_behind(shell: Shell, how: str) -> None:
    path = shell.write("msc", name="other")
    assert shell("deploy") == 0
    if how == "file gone":
        path.unlink()
    else:
        shell.write("msc")
    assert shell("undeploy") == 0
    assert shell.worker.connectors() == ["other"]
    assert shell.err.splitlines() == [
        f"warning: {MSC}: not found, so not deleted",
        ("warning: other: stays on the worker and also mirrors from 'eu': no file has this name"),
    ]


def test_byte_order_mark_and_odd_name(shell: Shell) -> None:
    name = "eu->centre source \u00e4&?#"
    text = json.dumps(settings("msc") | {"name": name}, ensure_ascii=False)
    shell.write_text("msc", "\ufeff" + text)
    assert shell("deploy") == 0, shell.err
    assert shell.worker.connectors() == [CPC, HBC, name]
    assert shell("undeploy") == 0, shell.err
    assert shell.worker.connectors() == []


@pytest.mark.parametrize("refused", NAMES[1:])
def test_all_or_none(shell: Shell, refused: str) -> None:
    shell.worker.refused[refused] = RequestError(400, "not this one")
    assert shell("deploy") == 1
    assert shell.worker.connectors() == []
    before = NAMES[: NAMES.index(refused)]
    assert shell.err.splitlines() == [
        f"sparkmirror: {refused}: rejected by the worker: not this one",
        *(f"sparkmirror: {name}: removed again" for name in reversed(before)),
        "sparkmirror: nothing was deployed",
    ]


def test_connectors_that_were_there_get_their_settings_back(shell: Shell) -> None:
    former = {key: str(value) for key, value in settings("cpc").items()} | {"groups": "a"}
    shell.worker.create(CPC, former, TargetState.PAUSED)
    shell.worker.refused[MSC] = RequestError(500, "no")  # so it is in doubt, and deleted as well
    assert shell("deploy") == 1
    assert shell.worker.connectors() == [CPC]
    assert shell.worker.connector_info(CPC).config == former
    assert shell.out.splitlines() == [f"{CPC}: settings replaced", f"{HBC}: created"]
    assert f"{MSC}: removed again" in shell.err
    assert f"{CPC}: previous settings restored" in shell.err


def test_what_cannot_be_undone_is_reported(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def delete(name: str) -> None:
        raise RequestError(500, "not now")

    monkeypatch.setattr(shell.worker, "delete", delete)
    shell.worker.refused[HBC] = RequestError(400, "no")
    assert shell("deploy") == 1
    assert f"sparkmirror: {CPC}: could not be undone: not now" in shell.err


def test_undeploy_deletes_and_warns(shell: Shell) -> None:
    shell("deploy")
    shell.worker.delete(HBC)
    (shell.folder / f"{CPC}.json").unlink()  # its name is that of the file
    assert shell("undeploy") == 0
    assert shell.out.splitlines() == [f"{CPC}: deleted", f"{MSC}: deleted"]
    assert shell.err == f"warning: {HBC}: not found, so not deleted\n"
    assert shell.worker.connectors() == []


def test_undeploy_does_not_guess_names_of_wrong_files(shell: Shell) -> None:
    shell("deploy")
    shell.worker.asked.clear()
    path = shell.write_text("hbc", "{")
    assert shell("undeploy") == 2
    assert shell.err.startswith(f"sparkmirror: {path}: no JSON: ")
    assert shell.worker.writes == []


def test_redeploy_takes_changed_files(shell: Shell) -> None:
    shell("deploy")
    shell.worker.asked.clear()
    shell.write("msc", topics="other")
    assert shell("redeploy") == 0, shell.err
    assert shell.worker.writes == ["delete"] * 3 + ["put_config"] * 3
    assert shell.worker.connector_info(MSC).config["topics"] == "other"


def test_redeploy_with_a_wrong_file_deletes_nothing(shell: Shell) -> None:
    shell("deploy")
    shell.worker.asked.clear()
    shell.write("msc", tasks_max="many")
    assert shell("redeploy") == 2
    assert (shell.worker.writes, len(shell.worker.connectors())) == ([], 3)


def test_status_of_connectors_and_tasks(shell: Shell) -> None:
    shell("deploy")
    assert shell("status") == 0
    head, *rows = [line.split() for line in shell.out.splitlines()]
    assert head == ["CONNECTOR", "TASK", "STATE", "WORKER", "REASON"]
    assert rows == [
        [name, task, "RUNNING", "connect-worker:8083", "-"] for name in NAMES for task in ("-", "0")
    ]
    shell.worker.delete(CPC)
    shell.worker.states[MSC] = (State.FAILED, "why\n\tat")
    assert shell("status") == 1
    first, *_, failed, _ = [line.split() for line in shell.out.splitlines()[1:]]
    assert first == [CPC, "-", "NOT", "FOUND", "-", "-"]
    assert failed == [MSC, "-", "FAILED", "connect-worker:8083", "why"]


@pytest.mark.parametrize("verb", ["deploy", "redeploy"])
def test_deployments_as_json(shell: Shell, verb: str) -> None:
    assert shell(verb, "--json") == 0, shell.err
    shown = json.loads(shell.out)
    assert (shown["cluster"], shown["running"]) == ("eu", True)
    assert [each["name"] for each in shown["connectors"]] == list(NAMES)
    assert {each["connector"]["state"] for each in shown["connectors"]} == {"RUNNING"}
    assert f"{MSC}: created\n" in shell.err
    assert shell("undeploy", "--json") == 0
    gone: list[object] = [{"name": name, "connector": None, "tasks": []} for name in NAMES]
    assert json.loads(shell.out) == {"cluster": "eu", "running": False, "connectors": gone}
    assert shell("deploy", "--json", "--timeout", "soon") == 2
    assert shell.out == ""


def test_status_as_json(shell: Shell) -> None:
    shell("deploy")
    shell.worker.delete(CPC)
    assert shell("status", "--json") == 1
    shown = json.loads(shell.out)
    assert (shown["cluster"], shown["running"]) == ("eu", False)
    first, second, third = shown["connectors"]
    assert first == {"name": CPC, "connector": None, "tasks": []}
    assert (second["name"], second["connector"]["state"]) == (HBC, "RUNNING")
    assert (third["name"], third["tasks"][0]["state"]) == (MSC, "RUNNING")


@pytest.mark.parametrize("verb", ["deploy", "undeploy", "redeploy", "status"])
def test_no_worker_is_one_line_with_the_url(shell: Shell, verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shell.url = f"http://user:secret@127.0.0.1:{port}"
    assert shell(verb) == 1
    assert shell.err.count("\n") == 1
    assert f"no response from the Connect worker at http://127.0.0.1:{port} to GET /: " in shell.err
    assert "secret" not in shell.err


def test_another_server_is_no_worker(shell: Shell) -> None:
    app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("hello"))])
    with RestServer([("127.0.0.1", 0)]).start(app) as server:
        shell.url = f"http://127.0.0.1:{server.ports[0]}"
        assert shell("status") == 1
        assert f"at {shell.url} is not a Connect worker: its response is not JSON" in shell.err
        shell.url += "/elsewhere"
        assert shell("status") == 1
        assert f"at {shell.url} is not a Connect worker: GET / returns HTTP 404" in shell.err


@pytest.mark.parametrize("url", ["localhost:8083", "ftp://h", "http://", "http://h:port"])
def test_wrong_url_is_a_usage_error(shell: Shell, url: str) -> None:
    shell.url = url
    assert shell("status") == 2
    assert shell.err.startswith(f"sparkmirror: url={url}: ")


def test_help_shows_exit_codes(shell: Shell) -> None:
    for verb in ("deploy", "undeploy", "status"):
        assert shell(verb, "--help") == 0
        assert "Exits with 0 if" in " ".join(shell.out.replace("|", " ").split())


def test_help_lists_each_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    words = capsys.readouterr().out.split()
    assert [words.count(verb) for verb in ("deploy", "undeploy", "redeploy")] == [1, 1, 1]
