"""MirrorMaker 1's options and its two files, as settings of one flow that keeps topic names.

Mirrors: kafka.tools.MirrorMaker and kafka.utils.TopicFilter (2.1 to 3.9). All errors
are raised at once, under the names in the options and files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sparkmirror.config.clients import BOOTSTRAP_SERVERS, CLUSTER_KEYS
from sparkmirror.config.config_def import JAVA_BLANKS, BadValue, Type, parse_value
from sparkmirror.config.files.properties import load_properties
from sparkmirror.config.files.providers import CONFIG_PROVIDERS, load_providers, resolve
from sparkmirror.config.findings import Findings
from sparkmirror.config.keys.classes import IDENTITY_POLICY
from sparkmirror.config.keys.legacy_keys import (
    AUTO_COMMIT,
    CONSUMER_GROUP,
    EXCLUDE_INTERNAL,
    FIXED,
    IGNORED_OF_CONSUMER,
    IGNORED_OF_PRODUCER,
    INTERNAL_TOPICS,
    MM2_FIXED,
    REFUSED_OF_CONSUMER,
    REFUSED_OF_PRODUCER,
    REFUSED_OPTIONS,
    SOURCE,
    TARGET,
    Refusal,
    flow_key,
)
from sparkmirror.config.mm2 import MirrorMakerConfig, parse_mm2
from sparkmirror.config.patterns.java_regex import compile_patterns
from sparkmirror.errors import ConfigError, ConfigErrors

POLICY_KEY = "replication.policy.class"
LEGACY_POLICY = "sparkmirror.mirror.legacy_policy:LegacyReplicationPolicy"
OPTIONS = "the command line"
INCLUDE = "--include"
QUOTES = re.compile(r"""^["']+|["']+$""")
METADATA_AGE = "metadata.max.age.ms"
OWN_OF_CONSUMER = (CONSUMER_GROUP, EXCLUDE_INTERNAL, AUTO_COMMIT)
# How often tasks store what was copied; the group follows with the user's interval.
LEAST_FLUSH_MS, MOST_FLUSH_MS = 500, 5000
DEFAULT_METADATA_AGE_MS = 300_000
MOST_REFRESH_SECONDS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class LegacyOptions:
    """The options as given on the command line; None for an absent one."""

    consumer_config: str | None = None
    producer_config: str | None = None
    include: str | None = None
    whitelist: str | None = None
    num_streams: str = "1"
    abort_on_send_failure: str = "true"
    offset_commit_interval_ms: str = "60000"
    new_consumer: bool = False
    others: Mapping[str, str | None] = field(default_factory=dict)


class OptionPlace(NamedTuple):
    """Where a setting of the flow comes from: a file or the command line, and the key there."""

    where: str
    key: str


@dataclass(frozen=True, slots=True)
class LegacyConfig:
    """MirrorMaker 1's settings, checked.

    `props` are keys of an mm2 file, `places` has the origin of each. `mirror` is the flow without
    the settings that depend on its source cluster: see `with_identity`.
    """

    group_id: str
    commit_interval_ms: int
    props: dict[str, str] = field(repr=False)
    places: dict[str, OptionPlace] = field(repr=False)
    mirror: MirrorMakerConfig
    warnings: tuple[str, ...] = ()

    @property
    def mm2_props(self) -> dict[str, str]:
        """The mm2 file that copies the same, for MirrorMaker 2 or `sparkmirror run`."""
        flush = {f"{TARGET}.offset.flush.interval.ms": str(self.commit_interval_ms)}
        return {**self.props, POLICY_KEY: IDENTITY_POLICY, **MM2_FIXED, **flush}

    def with_identity(
        self, name: str, replicas: int, *, has_default: bool = True
    ) -> MirrorMakerConfig:
        """The flow as it runs: `name` is unique to this group of this source cluster.

        `replicas` are those of its offsets topic, and of topics that it creates on brokers that do
        not report their own default.
        """
        worker = {
            f"{TARGET}.group.id": f"sparkmirror-legacy.{name}",
            f"{TARGET}.offset.storage.topic": f"mm2-offsets.{name}.internal",
            f"{TARGET}.offset.storage.partitions": "5",
            f"{TARGET}.offset.storage.replication.factor": str(replicas),
        }
        own = {} if has_default else {flow_key("replication.factor"): str(replicas)}
        props = _run_props(self.props, self.commit_interval_ms)
        return _parse({**props, **worker, **own}, self.places)


def load_legacy(options: LegacyOptions) -> LegacyConfig:
    """Read both files.

    Raises:
        ConfigErrors: everything that is wrong with options and files; no cluster was contacted.
    """
    findings = Findings(OPTIONS)
    reader = _OptionReader(findings)
    consumer = reader.load("--consumer.config", options.consumer_config)
    producer = reader.load("--producer.config", options.producer_config)
    reader.read_options(options)
    reader.read_consumer(consumer, options.consumer_config or "")
    reader.read_producer(producer, options.producer_config or "")
    commit_ms = _whole(findings, "--offset.commit.interval.ms", options.offset_commit_interval_ms)
    errors = list(findings.errors)
    mirror = None
    try:
        mirror = _parse(_run_props(reader.props, commit_ms), reader.places)
    except ConfigErrors as wrong:
        known = set(map(str, errors))
        errors += [
            error for error in wrong.errors if not reader.knows(error) and str(error) not in known
        ]
    if errors or mirror is None:
        raise ConfigErrors(errors)
    return LegacyConfig(
        group_id=reader.group_id,
        commit_interval_ms=commit_ms,
        props=reader.props,
        places=reader.places,
        mirror=mirror,
        warnings=(
            *findings.warnings,
            *(_renamed_warning(each, reader.places) for each in mirror.warnings),
        ),
    )


def include_pattern(text: str) -> str:
    """The Java expression that MirrorMaker 1 makes from `--include`: a comma means `|`."""
    return QUOTES.sub("", text.strip().replace(",", "|").replace(" ", ""))


class _OptionReader:
    """Collects the flow's settings, their origins and their errors."""

    def __init__(self, findings: Findings) -> None:
        self.props: dict[str, str] = dict(FIXED)
        self.places: dict[str, OptionPlace] = {}
        self.group_id = ""
        self._findings = findings
        self._pattern = ""
        # Errors that follow from these are omitted.
        self._reported: set[OptionPlace] = set()

    def knows(self, error: ConfigError) -> bool:
        """Whether an error only repeats one that was reported here."""
        return OptionPlace(error.where, error.key) in self._reported

    def load(self, option: str, name: str | None) -> dict[str, str]:
        """The keys of a file; empty, with its errors recorded, if it cannot be read."""
        side = SOURCE if option == "--consumer.config" else TARGET
        servers = f"{side}.{BOOTSTRAP_SERVERS}"
        if name is None:
            self._findings.error(option, None, "is missing", "name MirrorMaker 1's file")
            self._reported.add(OptionPlace("", servers))
            return {}
        self.places[servers] = OptionPlace(name, BOOTSTRAP_SERVERS)
        try:
            return load_properties(Path(name))
        except ConfigErrors as wrong:
            self._reported.add(OptionPlace(name, BOOTSTRAP_SERVERS))
            for error in wrong.errors:
                found = _found_in(self._findings, error.where)
                found.error(error.key, error.value, error.reason, error.remedy)
            return {}

    def read_options(self, options: LegacyOptions) -> None:
        """Topics, tasks, and the handling of records that the target rejects."""
        findings = self._findings
        for option, value in options.others.items():
            if value is not None:
                findings.error(option, value, *REFUSED_OPTIONS[option])
        if options.new_consumer:
            findings.warn("--new.consumer: has no effect, as in Kafka 2.0 and later")
        self._read_include(options)
        self._put(flow_key("tasks.max"), options.num_streams, OPTIONS, "--num.streams")
        _whole(findings, "--num.streams", options.num_streams, least=1)
        self._reported.add(OptionPlace(OPTIONS, "--num.streams"))
        abort = options.abort_on_send_failure.lower()
        if abort not in ("true", "false"):
            reason = "is neither true nor false"
            findings.error("--abort.on.send.failure", abort, reason, "use true or false")
        tolerance = "all" if abort == "false" else "none"
        self._put(flow_key("errors.tolerance"), tolerance, OPTIONS, "--abort.on.send.failure")

    def _read_include(self, options: LegacyOptions) -> None:
        text = options.include if options.include is not None else options.whitelist
        option = INCLUDE if options.include is not None else "--whitelist"
        if not text:
            self._findings.error(INCLUDE, text, "is missing", "name the topics to copy")
            return
        self._pattern = include_pattern(text)
        try:
            compile_patterns([self._pattern])
        except BadValue as wrong:
            remedy = wrong.remedy or "write a Java regular expression; a comma means |"
            self._findings.error(option, text, f"{self._pattern}: {wrong.reason}", remedy)
            return
        self._put(flow_key("topics"), self._pattern, OPTIONS, option)

    def read_consumer(self, given: Mapping[str, str], file: str) -> None:
        """The source cluster and how it is read."""
        found = _found_in(self._findings, file)
        usable = _take_usable(given, REFUSED_OF_CONSUMER, IGNORED_OF_CONSUMER, found)
        for key, value in usable.items():
            if key not in OWN_OF_CONSUMER:
                self._put(_client_key(SOURCE, "consumer", key), value, file, key)
        own = _own_values(given, found)
        self.group_id = own.get(CONSUMER_GROUP, "")
        if given and not self.group_id:
            reason = "is missing: this group's offsets are the starting positions"
            found.error(CONSUMER_GROUP, None, reason, "use MirrorMaker 1's value")
        if own.get(AUTO_COMMIT, "").lower() == "true":
            why = "only offsets of records that the target has confirmed are committed"
            found.warn(f"{AUTO_COMMIT}: has no effect: {why}")
        if own.get(EXCLUDE_INTERNAL, "true").lower() == "false":
            self._check_internal(given[EXCLUDE_INTERNAL], found)
        # As written: a config provider's value must not get into an mm2 file.
        group = given.get(CONSUMER_GROUP, "")
        self._put(f"{SOURCE}.consumer.client.id", group, file, CONSUMER_GROUP)
        # The consumer's own default; MirrorMaker 2's is earliest.
        self.props.setdefault(f"{SOURCE}.consumer.auto.offset.reset", "latest")
        self._put_refresh(own.get(METADATA_AGE, str(DEFAULT_METADATA_AGE_MS)))

    def _check_internal(self, written: str, found: Findings) -> None:
        if not self._pattern:
            return
        matcher = compile_patterns([self._pattern])
        names = [each for each in INTERNAL_TOPICS if matcher and matcher.fullmatch(each)]
        if names:
            reason = f"{INCLUDE} has {', '.join(names)}, and copying it would destroy groups"
            found.error(EXCLUDE_INTERNAL, written, reason, "remove it, or set it to true")

    def _put_refresh(self, age_ms: str) -> None:
        """A consumer finds new topics when it refreshes its metadata.

        The check of the consumer's own keys reports a bad number.
        """
        try:
            seconds = parse_value(Type.LONG, age_ms) // 1000
        except BadValue:
            seconds = 0
        seconds = min(max(seconds, 1), MOST_REFRESH_SECONDS)
        self.props[flow_key("refresh.topics.interval.seconds")] = str(seconds)

    def read_producer(self, given: Mapping[str, str], file: str) -> None:
        """The target cluster and how it is written."""
        found = _found_in(self._findings, file)
        usable = _take_usable(given, REFUSED_OF_PRODUCER, IGNORED_OF_PRODUCER, found)
        for key, value in usable.items():
            self._put(_client_key(TARGET, "producer", key), value, file, key)

    def _put(self, name: str, value: str, where: str, key: str) -> None:
        before = self.props.get(name)
        if before not in (None, value) and name in self.places:
            other = self.places[name].where
            reason = f"{other} has a different value, but both files share their config providers"
            _found_in(self._findings, where).error(
                key, value, reason, "use a different name for each"
            )
        self.props[name] = value
        self.places[name] = OptionPlace(where, key)


def _take_usable(
    given: Mapping[str, str],
    refused: Mapping[str, Refusal],
    ignored: Mapping[str, str],
    found: Findings,
) -> dict[str, str]:
    """The usable keys; rejected and ignored ones go to the findings."""
    usable: dict[str, str] = {}
    for key, value in given.items():
        if key in refused:
            found.error(key, value, *refused[key])
        elif key in ignored:
            found.warn(f"{key}: has no effect: {ignored[key]}")
        else:
            usable[key] = value
    return usable


def _own_values(given: Mapping[str, str], found: Findings) -> dict[str, str]:
    """The keys of the consumer's file that are used here, resolved and trimmed as it does."""
    names = (*OWN_OF_CONSUMER, METADATA_AGE)
    written = {key: given[key] for key in names if key in given}
    values = resolve(written, load_providers(given, found), found)
    return {key: value.strip(JAVA_BLANKS) for key, value in values.items()}


def _client_key(side: str, role: str, key: str) -> str:
    """The key of an mm2 file for one of MirrorMaker 1's consumer or producer."""
    if key == CONFIG_PROVIDERS or key.startswith(f"{CONFIG_PROVIDERS}."):
        return key
    return f"{side}.{key}" if key in CLUSTER_KEYS else f"{side}.{role}.{key}"


def _found_in(findings: Findings, where: str) -> Findings:
    """A view that names a file instead of the command line."""
    view = findings.renamed({})
    view.where = where
    return view


def _run_props(props: Mapping[str, str], commit_ms: int) -> dict[str, str]:
    flush = str(min(max(commit_ms, LEAST_FLUSH_MS), MOST_FLUSH_MS))
    return {
        **props,
        POLICY_KEY: LEGACY_POLICY,
        f"{TARGET}.offset.flush.interval.ms": flush,
    }


def _whole(findings: Findings, option: str, text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        remedy = f"use a whole number of at least {least}"
        findings.error(option, text, "is not a usable number", remedy)
        return least
    return int(text)


def _parse(props: Mapping[str, str], places: Mapping[str, OptionPlace]) -> MirrorMakerConfig:
    """The flow; errors are raised under the names of MirrorMaker 1's files."""
    try:
        return parse_mm2(props, Path("mm2.properties"), "")
    except ConfigErrors as wrong:
        raise ConfigErrors([_renamed(error, places) for error in wrong.errors]) from None


def _renamed(error: ConfigError, places: Mapping[str, OptionPlace]) -> ConfigError:
    where, key = places.get(error.key, OptionPlace("", error.key))
    return ConfigError(key, error.value, error.reason, error.remedy, where)


def _renamed_warning(text: str, places: Mapping[str, OptionPlace]) -> str:
    """Replace the key that a warning begins with."""
    name, _, rest = text.partition(": ")
    where, key = places.get(name, OptionPlace("", name))
    return f"{where}: {key}: {rest}" if where else text
