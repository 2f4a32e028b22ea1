"""Finds the one `KafkaMirrorMaker2` among the documents of a file."""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.tools.convert.ledger import Fate, NotCarried
from sparkmirror.tools.convert.yaml_text import BadYaml, YamlValue, read_documents

KIND = "KafkaMirrorMaker2"
LISTS = ("List", f"{KIND}List")
OTHER_KIND = Fate(f"is not a {KIND}", "nothing: it stays unchanged")


class Document(NamedTuple):
    """A document of the file, or an element of a list in it; `place` describes where."""

    place: str
    value: YamlValue

    @property
    def kind(self) -> YamlValue:
        return self.value.get("kind") if isinstance(self.value, dict) else None

    @property
    def name(self) -> str:
        metadata = self.value.get("metadata") if isinstance(self.value, dict) else None
        return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def find_resource(text: str, where: str) -> tuple[YamlValue, list[NotCarried]]:
    """The resource, and a note for each other document.

    Raises:
        ConfigErrors: there is none, there are several, or the text is not YAML.
    """
    documents = _documents(text, where)
    found = [document for document in documents if document.kind == KIND]
    if len(found) != 1:
        raise ConfigErrors(_missing(documents, where) if not found else [_several(found, where)])
    others = [document for document in documents if document is not found[0]]
    return found[0].value, [_note(document) for document in others]


def _documents(text: str, where: str) -> list[Document]:
    try:
        values = read_documents(text)
    except BadYaml as bad:
        raise ConfigErrors([ConfigError("", None, bad.reason, bad.remedy, where)]) from bad
    found = [Document(f"document {number}", value) for number, value in enumerate(values, 1)]
    return [each for document in found for each in _flattened(document)]


def _flattened(document: Document) -> list[Document]:
    """The elements of a list, such as `kubectl get -o yaml` prints."""
    items = document.value.get("items") if isinstance(document.value, dict) else None
    if document.kind not in LISTS or not isinstance(items, list):
        return [document]
    return [
        Document(f"{document.place}, element {number}", value)
        for number, value in enumerate(items, 1)
    ]


def _missing(documents: list[Document], where: str) -> list[ConfigError]:
    remedy = f"name a file with a resource of kind {KIND}"
    if not documents:
        return [ConfigError("", None, "the file has no documents", remedy, where)]
    return [
        ConfigError(_at(document, documents, "kind"), *_wrong_kind(document), remedy, where)
        for document in documents
    ]


def _wrong_kind(document: Document) -> tuple[str | None, str]:
    if not isinstance(document.value, dict):
        return None, "is not a resource of Kubernetes"
    if document.kind is None:
        return None, "is missing"
    return str(document.kind), f"is not {KIND}"


def _at(document: Document, documents: list[Document], name: str) -> str:
    return name if len(documents) == 1 else f"{document.place}: {name}"


def _several(found: list[Document], where: str) -> ConfigError:
    names = ", ".join(document.name or document.place for document in found)
    reason = f"the file has {len(found)} resources of kind {KIND}: {names}"
    return ConfigError("", None, reason, "put each into a separate file", where)


def _note(document: Document) -> NotCarried:
    name = " ".join(filter(None, (str(document.kind or ""), document.name)))
    path = f"{document.place} ({name})" if name else document.place
    return NotCarried(path, OTHER_KIND.reason, OTHER_KIND.instead)
