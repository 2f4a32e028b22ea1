"""The page of a real worker: figures of a flow, why a topic is not mirrored, actions, offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaException
from playwright.sync_api import Browser, Page, expect

from sparkmirror.embedded import KafkaCluster
from sparkmirror.types import TopicPartition
from tests.clusters import create_topic, end_offset, produce, unique_name, wait_for
from tests.group_offsets import commit_offsets
from tests.ui.conftest import EXPECTED
from tests.worker_cluster.workers import Flow, Worker, Workers, connector_path

pytestmark = pytest.mark.kafka

RECORDS = 200
MS = 60_000  # a loaded machine starts Spark meanwhile


@dataclass(frozen=True)
class Scene:
    """A worker with one flow."""

    worker: Worker
    flow: Flow
    source: KafkaCluster
    target: KafkaCluster
    other: str


@pytest.fixture(scope="module")
def scene(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    topic = create_topic(source_cluster, unique_name("orders"), partitions=2)
    other = create_topic(source_cluster, unique_name("payroll"))
    produce(source_cluster, topic, [b"x" * 100] * RECORDS)
    group = unique_name("readers")
    commit_offsets(source_cluster, group, {TopicPartition(topic, 0): RECORDS})
    workers = Workers(tmp_path_factory.mktemp("page"), source_cluster, target_cluster)
    flow = Flow(workers, topic, group)
    worker = workers.new_worker("page")
    try:
        worker.start()
        for name, config in flow.configs().items():
            assert worker.ask("PUT", connector_path(name, "config"), config).status_code == 201
        worker.wait_for(lambda: copied(target_cluster, flow) == RECORDS, lambda: "all is copied")
        yield Scene(worker, flow, source_cluster, target_cluster, other)
    finally:
        worker.close()


def copied(target: KafkaCluster, flow: Flow) -> int:
    """How many records the remote topic has; none while there is no such topic."""
    try:
        return end_offset(target, flow.remote)
    except KafkaException:
        return 0


@pytest.fixture
def page(browser: Browser, scene: Scene) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    opened = context.new_page()
    opened.set_default_timeout(MS)
    expect.set_options(timeout=MS)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on(
        "console",
        lambda message: (
            errors.append(message.text)
            if message.type == "error" and EXPECTED not in message.text
            else None
        ),
    )
    opened.goto(f"{scene.worker.url}/ui")
    yield opened
    context.close()
    expect.set_options(timeout=5000)
    assert errors == []


def look(page: Page, view: str) -> None:
    page.get_by_role("navigation", name="Views").first.get_by_role("link", name=view).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(view)


def test_every_view_of_a_real_flow_has_its_figures(page: Page, scene: Scene) -> None:
    main = page.get_by_role("main")
    flow = scene.flow
    expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()
    expect(main.get_by_role("heading", name="Everything is all right")).to_be_visible()
    expect(main).to_contain_text("1 of 1 brokers")
    look(page, "Flow")
    expect(page.locator(".chart canvas")).to_have_count(4)
    look(page, "Topics")
    page.get_by_role("button", name=f"Details of {flow.alias} to b/{flow.topic}").click()
    expect(page.get_by_role("region", name="Partitions")).to_contain_text(f"{flow.topic}-1")
    expect(main).to_contain_text(flow.remote)
    page.get_by_role("tab", name="Not mirrored, and why").click()
    page.get_by_label("Filter topics").fill(scene.other)
    page.get_by_role("button", name=re.compile("^Details of")).first.click()
    expect(main.locator(".rules")).to_contain_text("topics")
    look(page, "Groups")
    expect(main).to_contain_text(flow.group)
    look(page, "Connectors")
    for name in flow.names:
        expect(main).to_contain_text(name)
    look(page, "Events")
    expect(main).to_contain_text(flow.remote)
    look(page, "Failover")
    expect(main.get_by_role("heading", level=2).first).to_be_visible()
    expect(main).to_contain_text("You check")


def test_records_that_arrive_are_counted_without_a_reload(page: Page, scene: Scene) -> None:
    look(page, "Topics")
    page.get_by_role("button", name=f"{scene.flow.alias} to b/{scene.flow.topic}").click()
    ends = (
        page.get_by_role("region", name="Partitions")
        .get_by_role("row")
        .filter(has_text=f"{scene.flow.topic}-0")
    )
    expect(ends).to_contain_text(f"{end_offset(scene.source, scene.flow.topic):,}")
    produce(scene.source, scene.flow.topic, [b"y"] * 1000)
    expect(ends).to_contain_text(f"{end_offset(scene.source, scene.flow.topic):,}")


def test_a_connector_is_paused_and_resumed(page: Page, scene: Scene) -> None:
    name = scene.flow.source_name
    page.goto(f"{page.url.partition('#')[0]}#connectors")
    page.get_by_role("link", name=name).click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").click()
    scene.worker.wait_for_states(name, "PAUSED")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    scene.worker.wait_for_states(name, "RUNNING")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_offsets_are_changed_while_it_is_stopped(page: Page, scene: Scene) -> None:
    name = scene.flow.source_name
    page.goto(f"{page.url.partition('#')[0]}#connectors")
    page.get_by_role("link", name=name).click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_label("To confirm").fill(name)
    page.get_by_role("button", name="Stop connector").click()
    page.get_by_role("tab", name="Offsets").click()
    field = page.get_by_label(f"Offset of {scene.flow.topic}-0")
    field.fill("10")
    page.get_by_role("button", name="Review 1 change").click()
    expect(page.get_by_role("dialog")).to_contain_text("copied a second time")
    page.get_by_label("To confirm").fill(name)
    page.get_by_role("button", name="Write offsets").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    offsets = scene.worker.ask("GET", connector_path(name, "offsets")).json()["offsets"]
    assert {"offset": 10} in [each["offset"] for each in offsets]
    before = end_offset(scene.target, scene.flow.remote)
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    wait_for(
        lambda: end_offset(scene.target, scene.flow.remote) > before,
        within=60,
        describe="records are copied a second time",
    )


def test_a_worker_that_ends_is_said_to_be_gone(page: Page, scene: Scene) -> None:
    expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()
    scene.worker.stop()
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.get_by_role("alert")).to_contain_text("Everything below is as of")
    scene.worker.start()
    page.get_by_role("button", name="Try now").click()
    expect(page.get_by_role("alert")).to_have_count(0)
