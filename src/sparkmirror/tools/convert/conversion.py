"""Converts a resource to the texts of files, and lists what was not carried over.

All errors of the resource are raised at once, before any file exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.tools.convert.connect_files import (
    CONNECTORS_FOLDER,
    POD_IP,
    WORKER_FILE,
    connector_files,
    json_text,
    worker_sections,
)
from sparkmirror.tools.convert.documents import find_resource
from sparkmirror.tools.convert.fields import NOT_CARRIED, UNKNOWN
from sparkmirror.tools.convert.ledger import Ledger, NotCarried
from sparkmirror.tools.convert.manifests import Manifests, Object
from sparkmirror.tools.convert.mm2_files import FILE as MM2_FILE
from sparkmirror.tools.convert.mm2_files import mm2_sections
from sparkmirror.tools.convert.own_checks import check_mm2, check_workers
from sparkmirror.tools.convert.resource import MirrorResource, read_resource
from sparkmirror.tools.convert.settings import (
    SECRETS_FOLDER,
    FileSettings,
    properties_text,
    provider_settings,
)
from sparkmirror.tools.convert.yaml_text import write_documents

MANIFESTS_FILE = "kubernetes.yaml"
PROVIDERS = "Placeholders may read only what the pod mounts"
HEAD = """\
Made by `sparkmirror convert` from the KafkaMirrorMaker2 {name}.
Paths are those of the pod of {manifests}, which mounts the Secrets that the resource names."""
RUN_MM2 = """\
# Dedicated mode. Delete the KafkaMirrorMaker2 {name} first: two mirrors copy everything twice.
#   kubectl apply -f {manifests}
"""
RUN_WORKERS = """\
# Connect mode. Delete the KafkaMirrorMaker2 {name} first: its workers are in the same group.
# The REST API requires a password, so create its users first. `sparkmirror password` hashes a
# password; the files probe and deploy hold plain ones, for the readiness probe and for the Jobs.
#   (sparkmirror password admin && sparkmirror password probe) > users.properties
#   printf 'probe:%s' THE-PASSWORD-OF-PROBE > probe
#   printf 'admin:%s' THE-PASSWORD-OF-ADMIN > deploy
#   kubectl create secret generic {users} --from-file=users.properties \\
#     --from-file=probe --from-file=deploy
#   kubectl apply -f {manifests}
# Each Job sends the connectors of one source cluster to the workers, once. After a change, delete
# the Jobs and apply again.
"""


class Format(StrEnum):
    """What is written: one mm2 file, or the files of a worker and its connectors."""

    MM2 = "mm2"
    CONNECTORS = "connectors"


@dataclass(frozen=True, slots=True)
class Conversion:
    """The texts of the files by name, and the fields that were not carried over."""

    name: str
    files: Mapping[str, str]
    not_carried: tuple[NotCarried, ...]


def convert(text: str, where: str, format_: Format, image: str) -> Conversion:
    """Convert the resource in `text`, the content of the file `where`.

    Raises:
        ConfigErrors: everything that is wrong with it.
    """
    value, others = find_resource(text, where)
    ledger = Ledger(where)
    resource = read_resource(value, ledger)
    ledger.leftovers(value, NOT_CARRIED, UNKNOWN)
    write = {Format.MM2: _write_mm2, Format.CONNECTORS: _write_workers}[format_]
    files = write(resource, Manifests(resource, image), ledger)
    _note_replicas(resource, ledger)
    return Conversion(resource.name, files, (*sorted(ledger.notes), *others))


def _write_mm2(resource: MirrorResource, manifests: Manifests, ledger: Ledger) -> dict[str, str]:
    sections = mm2_sections(resource, ledger)
    sections[PROVIDERS] = _providers(resource, [*sections.values()], [])
    check_mm2(_all_of(sections), ledger)
    file = properties_text(sections, _head(resource))
    head = RUN_MM2.format(name=resource.name, manifests=MANIFESTS_FILE)
    return {MM2_FILE: file, MANIFESTS_FILE: _manifest(head, manifests.dedicated(file))}


def _write_workers(
    resource: MirrorResource, manifests: Manifests, ledger: Ledger
) -> dict[str, str]:
    connectors = connector_files(resource)
    sections = worker_sections(resource, connectors.values())
    settings = [*sections.values(), *connectors.values()]
    sections[PROVIDERS] = _providers(resource, settings, [POD_IP])
    check_workers(_all_of(sections), connectors.values(), ledger)
    file = properties_text(sections, _head(resource))
    texts = {name: json_text(each) for name, each in connectors.items()}
    users = manifests.users_secret
    head = RUN_WORKERS.format(name=resource.name, users=users, manifests=MANIFESTS_FILE)
    return {
        WORKER_FILE: file,
        **{f"{CONNECTORS_FOLDER}/{name}": each for name, each in texts.items()},
        MANIFESTS_FILE: _manifest(head, manifests.workers(file, texts)),
    }


def _providers(
    resource: MirrorResource, settings: list[FileSettings], variables: list[str]
) -> FileSettings:
    secrets = [SECRETS_FOLDER] if resource.values.secrets.keys else []
    values = [setting.value for each in settings for setting in each.values()]
    folders = [*secrets, *resource.pods.folders]
    return provider_settings(values, folders, [*variables, *resource.pods.variables])


def _all_of(sections: Mapping[str, FileSettings]) -> FileSettings:
    return {key: setting for each in sections.values() for key, setting in each.items()}


def _head(resource: MirrorResource) -> str:
    return HEAD.format(name=resource.name, manifests=MANIFESTS_FILE)


def _manifest(head: str, objects: list[Object]) -> str:
    return head + "---\n" + write_documents(objects)


def _note_replicas(resource: MirrorResource, ledger: Ledger) -> None:
    if resource.pods.replicas > 1:
        ledger.note(
            "spec.replicas",
            f"one of the {resource.pods.replicas} pods copies, and the others stand by to take "
            "over; Strimzi spreads the tasks over all",
            "use fewer pods, or a Spark cluster (docs/spark-clusters.md) to spread the copying",
        )
