"""deploy/Dockerfile is built, and its image runs: C of the users, and a dedicated mirror.

Containers are as restricted as the compose file and the manifests say; they share this machine's
network, where the brokers are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import sparkmirror
from sparkmirror.demo.reading import RecordContent, read_topic
from sparkmirror.embedded import KafkaCluster
from sparkmirror.embedded.ports import ReservedPort
from tests.clusters import create_topic, produce, side_by_side, start_cluster, unique_name, wait_for
from tests.deploy.engine import Engine, start_engine, write_secrets
from tests.deploy.files import DEPLOY, IMAGE, Json, load_documents, run
from tests.deploy.test_image import names_of, needed
from tests.mm2_suite.topics import ends
from tests.users import files
from tests.users.workers import WorkerProcess

# Most of it is the time that the image takes.
pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(1200)]

# Spark alone takes a fifth of it where many tests run side by side.
SECONDS = 120.0
# The grace of the compose file and of the manifests, after which an engine kills.
STOP_SECONDS = 30


@pytest.fixture(scope="module")
def mark() -> str:
    """A word in what only the build may know."""
    return unique_name("mark")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, mark: str) -> Iterator[Engine]:
    """An engine that has the image."""
    with start_engine() as engine:
        engine.build(IMAGE, write_secrets(tmp_path_factory.mktemp("secrets"), mark))
        yield engine


@pytest.fixture(scope="module")
def clusters() -> Iterator[list[KafkaCluster]]:
    """Remote topics have two replicas unless a file says otherwise."""
    source, target = start_cluster("image-source"), start_cluster("image-target", brokers=2)
    with side_by_side([source, target]) as clusters:
        yield clusters


def service(name: str) -> Json:
    (compose,) = load_documents(DEPLOY / "docker-compose.yml")
    found: Json = compose["services"][name]
    return found


def restrictions(service: Json) -> list[str]:
    """What the compose file forbids a container, in podman's words."""
    assert service["read_only"] is True
    words = ["--read-only", "--read-only-tmpfs=false"]
    words += [f"--tmpfs={value}" for value in service["tmpfs"]]
    words += [f"--cap-drop={value}" for value in service["cap_drop"]]
    return words + [f"--security-opt={value}" for value in service["security_opt"]]


def health_check(service: Json, port: str) -> list[str]:
    """The compose file's command, for a worker at another port."""
    kind, *command = service["healthcheck"]["test"]
    assert kind == "CMD"
    return [word.replace("28082", port) for word in command]


class TestImage:
    """What it consists of."""

    def test_runs_a_worker_by_default_and_not_as_root(self, engine: Engine) -> None:
        config = engine.inspect(IMAGE)["Config"]
        assert config["User"] == "10001"
        assert config["Entrypoint"] == ["tini", "--", "sparkmirror"]
        assert config["Cmd"] == ["worker"]
        assert config["StopSignal"] == "SIGTERM"
        assert config["Labels"]["org.opencontainers.image.version"] == sparkmirror.__version__
        assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"

    def test_runs_other_commands(self, engine: Engine) -> None:
        version = engine.call("run", "--rm", IMAGE, "--version")
        assert version == f"sparkmirror {sparkmirror.__version__}\n"
        refused = engine.attempt("run", "--rm", IMAGE)
        assert refused.returncode == 2
        assert "CONNECT_BOOTSTRAP_SERVERS" in refused.stderr

    def test_has_the_packages_of_the_program_and_no_others(self, engine: Engine) -> None:
        code = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
        found = {name.lower().replace("_", "-") for name in engine.python(IMAGE, code).split()}
        others = {"colorama", "tzdata"}  # of other systems
        assert found == names_of(needed("run")) - others | {"sparkmirror"}

    def test_has_no_development_tools(self, engine: Engine) -> None:
        tools = ("pip", "pip3", "gcc", "cc", "make", "javac", "git", "curl", "wget")
        code = f"import shutil; print([t for t in {tools} if shutil.which(t)])"
        assert engine.python(IMAGE, code) == "[]\n"

    def test_secrets_of_the_build_are_in_no_layer(self, engine: Engine, mark: str) -> None:
        assert len(engine.layers) > 3
        output = json.dumps(engine.inspect(IMAGE)) + engine.call("history", "--no-trunc", IMAGE)
        assert mark not in output
        found = run("grep", "-rlF", mark, *map(str, engine.layers), within=300.0)
        assert (found.returncode, found.stdout) == (1, "")


@contextmanager
def run_container(
    engine: Engine, folder: Path, name: str, options: Sequence[str | Path], *words: str
) -> Iterator[WorkerProcess]:
    """The image, in a container of that name, whose output is a log in `folder`."""
    session = f"--env=SPARKMIRROR_TEST_SESSION={os.environ['SPARKMIRROR_TEST_SESSION']}"
    command = [*engine.program, "run", "--name", name, session, *options, IMAGE]
    container = WorkerProcess(
        folder / f"{name}.log", *words, program=command, variables=engine.environment
    )
    try:
        yield container
    finally:
        engine.call("rm", "--force", "--ignore", "--time", "0", name)
        container.kill()


def stop(engine: Engine, name: str) -> None:
    """SIGTERM as `docker stop` sends it: an orderly end, all positions stored, and no SIGKILL."""
    engine.call("stop", "--time", str(STOP_SECONDS), name)
    code = engine.call("container", "inspect", "--format", "{{.State.ExitCode}}", name)
    assert code == "0\n", engine.call("logs", name)[-3000:]


def wait_same(
    container: WorkerProcess, clusters: Sequence[KafkaCluster], topic: str, remote: str
) -> None:
    """Wait until the target has every record, and see that each is as it was, once."""
    source, target = clusters
    wanted = list(ends(source, [topic]).values())
    wait_for(
        lambda: list(ends(target, [remote]).values()) == wanted,
        within=SECONDS,
        describe=lambda: f"{remote}: {wanted}, not {ends(target, [remote])}; {container.log}",
    )
    there, here = contents(source, topic), contents(target, remote)
    assert here == there
    assert len(there) == sum(wanted)


def contents(cluster: KafkaCluster, topic: str) -> list[RecordContent]:
    records = read_topic(cluster.bootstrap_servers, topic, read_committed=True)
    return [each.content for each in records[0]]


def send(cluster: KafkaCluster, topic: str, numbers: range) -> None:
    produce(cluster, topic, [b"%d" % number for number in numbers])


class TestWorker:
    """C: variables and no file; the worker's own cluster is the source."""

    @contextmanager
    def run_worker(
        self, engine: Engine, clusters: Sequence[KafkaCluster], folder: Path, name: str
    ) -> Iterator[WorkerProcess]:
        """As the compose file's service `quickstart`."""
        with ReservedPort() as port:
            of_c = files.quickstart(clusters[0].bootstrap_servers, port.number)
            variables = [f"--env={key}={value}" for key, value in of_c.items()]
            options = [*variables, *restrictions(service("quickstart"))]
            with run_container(engine, folder, name, options) as worker:
                worker.wait_ready()
                yield worker

    def test_c_in_a_container(
        self, engine: Engine, clusters: list[KafkaCluster], tmp_path: Path
    ) -> None:
        source, target = clusters
        create_topic(source, "to_replicate")
        send(source, "to_replicate", range(500))
        servers = (source.bootstrap_servers, target.bootstrap_servers)
        config = files.smallest("test_mirror", "to_replicate", *servers)
        config["producer.override.bootstrap.servers"] = target.bootstrap_servers
        with self.run_worker(engine, clusters, tmp_path, "first") as worker:
            posted = worker.ask("POST", "/connectors", {"name": "test_mirror", "config": config})
            assert posted.status_code == 201, posted.text
            assert worker.get("/connectors") == ["test_mirror"]
            wait_same(worker, clusters, "to_replicate", "source.to_replicate")
            send(source, "to_replicate", range(500, 600))
            wait_same(worker, clusters, "to_replicate", "source.to_replicate")
            worker.wait_running("test_mirror", tasks=1, on=worker)
            port = worker.worker_id.removeprefix("localhost:")
            engine.call("exec", "first", *health_check(service("quickstart"), port))
            stop(engine, "first")
        send(source, "to_replicate", range(600, 700))
        with self.run_worker(engine, clusters, tmp_path, "second") as worker:
            assert worker.get("/connectors") == ["test_mirror"]
            # Nothing is there twice: the first container stored its position when it stopped.
            wait_same(worker, clusters, "to_replicate", "source.to_replicate")
            stop(engine, "second")


class TestDedicated:
    """The mm2.properties of the manifest, as its pod has it: mounted, with limits and no rights."""

    @pytest.fixture
    def objects(self) -> dict[str, Json]:
        documents = load_documents(DEPLOY / "kubernetes" / "dedicated.yaml")
        return {document["kind"]: document for document in documents}

    def test_mirror_of_the_manifest(
        self,
        engine: Engine,
        clusters: list[KafkaCluster],
        objects: dict[str, Json],
        tmp_path: Path,
    ) -> None:
        source = clusters[0]
        create_topic(source, "orders")
        send(source, "orders", range(500))
        (pod,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
        files_of_pod = self.write_files(objects, clusters, tmp_path)
        options = [f"--volume={files_of_pod}:/etc/sparkmirror:ro", *self.limits(pod)]
        with run_container(engine, tmp_path, "mirror", options, *pod["args"]) as mirror:
            wait_same(mirror, clusters, "orders", "source.orders")
            send(source, "orders", range(500, 600))
            wait_same(mirror, clusters, "orders", "source.orders")
            stop(engine, "mirror")

    def write_files(
        self, objects: dict[str, Json], clusters: Sequence[KafkaCluster], folder: Path
    ) -> Path:
        """The ConfigMap and the Secret, with the addresses of the test's brokers."""
        mounted = folder / "etc"
        (mounted / "secret").mkdir(parents=True)
        for name, text in objects["Secret"]["stringData"].items():
            (mounted / "secret" / name).write_text(text, "ascii")
        lines = objects["ConfigMap"]["data"]["mm2.properties"]
        for alias, cluster in zip(("source", "target"), clusters, strict=True):
            old = rf"(?m)^{alias}\.bootstrap\.servers=.*"
            lines, count = re.subn(
                old, f"{alias}.bootstrap.servers={cluster.bootstrap_servers}", lines
            )
            assert count == 1
        # Two brokers instead of three.
        stores = ("config", "offset", "status")
        lines += "".join(f"{store}.storage.replication.factor=1\n" for store in stores)
        (mounted / "mm2.properties").write_text(lines, "ascii")
        return mounted

    def limits(self, container: Json) -> list[str]:
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        words = ["--read-only", "--read-only-tmpfs=false", "--tmpfs=/tmp:exec,mode=1777"]
        words += [f"--cap-drop={each}" for each in security["capabilities"]["drop"]]
        memory = container["resources"]["limits"]["memory"].removesuffix("i").lower()
        return [*words, "--security-opt=no-new-privileges", f"--memory={memory}"]
