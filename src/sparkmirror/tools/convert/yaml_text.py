"""YAML as Kubernetes reads it: text to plain values, and plain values to text.

Runs on: the user's machine. The only module that imports PyYAML; it uses the composer (text to a
tree of nodes) and the safe dumper, so no tag creates an object. Scalars are resolved as in
`kubectl`: dates and `1:30` are text, `yes` is a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml

YamlValue = dict[str, "YamlValue"] | list["YamlValue"] | str | int | float | bool | None

TAG = "tag:yaml.org,2002:"
TEXT, MERGE = f"{TAG}str", f"{TAG}merge"
# etcd accepts 1.5 MB. An alias may mean a large part of a file that itself has aliases.
MOST_BYTES = 1_500_000
MOST_VALUES = 50_000
ENDLESS = MOST_VALUES + 1
OCTAL = re.compile(r"[-+]?0[0-7]+")
TRUE = ("yes", "true", "on")
# Letters that are booleans in Kubernetes' YAML and text in PyYAML's.
BOOLEAN_LETTERS = ("y", "n")
WIDEST = 10_000

# Types of scalars without quotes; all others are text.
IMPLICIT = {
    "bool": r"(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$",
    "int": r"[-+]?(?:0x[0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)$",
    "float": r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$",
    "null": r"(?:~|null|Null|NULL|)$",
    "merge": r"<<$",
}


class BadYaml(ValueError):
    """Text that cannot be parsed: where, why, and what to write instead."""

    def __init__(self, reason: str, remedy: str, line: int | None = None) -> None:
        super().__init__(reason, remedy, line)
        self.reason = reason if line is None else f"line {line}: {reason}"
        self.remedy = remedy


class _Loader(yaml.SafeLoader):
    """Resolves the scalars of IMPLICIT and no others."""


_Loader.yaml_implicit_resolvers = {}
for _name, _pattern in IMPLICIT.items():
    _Loader.add_implicit_resolver(f"{TAG}{_name}", re.compile(_pattern), None)


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a block, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if text.lower() in BOOLEAN_LETTERS else None
    return dumper.represent_scalar(TEXT, text, style=style)


_Dumper.add_representer(str, _represent)


def read_documents(text: str) -> list[YamlValue]:
    """Every document of the text, except empty ones.

    Raises:
        BadYaml: it is not YAML, or not valid for Kubernetes.
    """
    if len(text) > MOST_BYTES:
        raise BadYaml(f"has more than {MOST_BYTES:,} characters", "name the file of one resource")
    try:
        documents = [_document(node) for node in yaml.compose_all(text, Loader=_Loader)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        raise BadYaml(f"not YAML: {error.problem}", "correct it", line) from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise BadYaml(f"not YAML: {reason}", "save it as text in UTF-8") from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, BadYaml):
            raise
        raise BadYaml(f"not YAML: {error}", "correct the escape or number") from error
    except RecursionError as error:
        raise BadYaml("is nested too deeply", "name the file of one resource") from error
    return [document for document in documents if document is not None]


def write_documents(documents: Iterable[Mapping[str, Any]]) -> str:
    """The documents as YAML, in the order of their members."""
    return yaml.dump_all(
        list(documents), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDEST
    )


def _document(node: yaml.Node) -> YamlValue:
    if _size(node, {}) > MOST_VALUES:
        reason = f"has more than {MOST_VALUES:,} values, with all aliases written out"
        raise BadYaml(reason, "write it without aliases", _line(node))
    return _value(node)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """The number of values in the node; ENDLESS if it contains itself."""
    if id(node) not in known:
        known[id(node)] = ENDLESS
        known[id(node)] = 1 + sum(_size(child, known) for child in _children(node))
    return known[id(node)]


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _value(node: yaml.Node) -> YamlValue:
    if isinstance(node, yaml.MappingNode) and node.tag == f"{TAG}map":
        return _mapping(node)
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{TAG}seq":
        return [_value(each) for each in node.value]
    read = _SCALARS.get(node.tag)
    if not isinstance(node, yaml.ScalarNode) or read is None:
        raise BadYaml(f"unknown tag {node.tag}", "remove the tag", _line(node))
    return read(_encodable(node))


def _mapping(node: yaml.MappingNode) -> dict[str, YamlValue]:
    found: dict[str, YamlValue] = {}
    merged: list[YamlValue] = []
    for key, value in node.value:
        if key.tag == MERGE:
            merged.append(_value(value))
            continue
        name = _name_of(key)
        if name in found:
            raise BadYaml(f"'{name}' is set twice in one mapping", "keep one", _line(key))
        found[name] = _value(value)
    for other in merged:
        found = _merged(other, node) | found
    return found


def _merged(value: YamlValue, node: yaml.Node) -> dict[str, YamlValue]:
    """The members that `<<` adds, from a mapping or several, of which the first wins."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadYaml("'<<' needs a mapping", "write the members themselves", _line(node))
    found: dict[str, YamlValue] = {}
    for each in value:
        found = (each if isinstance(each, dict) else {}) | found
    return found


def _name_of(key: yaml.Node) -> str:
    if not isinstance(key, yaml.ScalarNode):
        raise BadYaml("a key is not text", "write keys as text", _line(key))
    return _encodable(key)


def _encodable(node: yaml.ScalarNode) -> str:
    """Its text. Raises BadYaml for an escape of half a character, which no file can contain."""
    text = str(node.value)
    try:
        text.encode()
    except UnicodeEncodeError:
        reason = "an escape encodes half a character"
        raise BadYaml(reason, "write the character itself", _line(node)) from None
    return text


def _line(node: yaml.Node) -> int | None:
    return None if node.start_mark is None else node.start_mark.line + 1


def _int(text: str) -> int:
    return int(text, 8 if OCTAL.fullmatch(text) else 0)


_SCALARS: Mapping[str, Callable[[str], YamlValue]] = {
    TEXT: str,
    f"{TAG}int": _int,
    f"{TAG}float": float,
    f"{TAG}bool": lambda text: text.lower() in TRUE,
    f"{TAG}null": lambda _: None,
}
