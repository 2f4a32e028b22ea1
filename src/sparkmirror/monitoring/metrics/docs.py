"""Makes docs/metrics.md from the table of metrics.

Run as: python -m sparkmirror.monitoring.metrics.docs [--check] [path]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from sparkmirror.monitoring.metrics.left_out import LEFT_OUT
from sparkmirror.monitoring.metrics.table.jvm_rows import JVM_ROWS, PROCESS_ROWS
from sparkmirror.monitoring.metrics.table.kafka_rows import KAFKA_ROWS
from sparkmirror.monitoring.metrics.table.metric_row import MetricRow
from sparkmirror.monitoring.metrics.table.own_rows import OWN_ROWS

DEFAULT_PATH = Path("docs", "metrics.md")
COMMAND = "python -m sparkmirror.monitoring.metrics.docs"

INTRODUCTION = f"""# Metrics

<!-- Made from the table of metrics by `{COMMAND}`. Do not edit. -->

Every REST listener serves `GET /metrics` in the text format of Prometheus: that of a Connect
worker, and that of a node of dedicated mode with `dedicated.mode.enable.internal.rest=true`. To
serve it on a port of its own, in both modes and also without a REST API:

```properties
sparkmirror.metrics.listeners = http://:9404
```

```yaml
scrape_configs:
  - job_name: sparkmirror
    static_configs:
      - targets: [worker-1:9404, worker-2:9404]
```

Users and TLS are those of the REST API; a read-only user is enough. [security.md](security.md)
says what the metrics reveal. [configuration.md](configuration.md#metrics) has the keys.

- Each worker shows what runs on it. Sum over the workers.
- What is not known has no sample, or NaN where Kafka's metrics have NaN. It is never 0.
- A scrape reads what the worker knows at that moment. It asks no cluster, and works while clusters
  or Spark cannot be reached: then `sparkmirror_metrics_part_up` is 0 for the part that is missing.
- The copy counts per batch, never per record.

## Names

Names, labels and the quotes inside label values are those that Strimzi's rules for jmx_exporter
give the metrics of MirrorMaker 2 and Connect 4.3, so dashboards and alerts for these work
unchanged: `connector="\\"a->b.MirrorSourceConnector\\""` has quotes because JMX puts them around
names with other characters than letters, digits, `_`, `-`, `%`, `.` and blanks. Our own metrics
begin with `sparkmirror_`; their labels have no such quotes, and `topic` is the source topic. The
lag in records is there under the names of Kafka's consumer and of KIP-971, too. `promtool check
metrics` objects to names of Kafka's (`_ms`, `_count`), as with MirrorMaker 2, and to none of ours.

`metric.names.formats=new` of Kafka 4.3 has no effect. Java's reporters (`metric.reporters`) cannot
run here; `metrics.sample.window.ms` and `metrics.num.samples` have no effect: averages and extremes
are those of the last 30 to 60 s, as with Kafka's defaults.

## Many partitions

`sparkmirror.metrics.per.partition=auto` gives each partition its own series while this process has
1,000 of them at most. Beyond that, the series of a topic become one without the label `partition`:
sums of records and bytes, the worst age, latency and lag in seconds. Beyond 1,000 topics the series
of a flow become one. `always` and `never` decide it: with `always`, a scrape of 10,000
partitions has 22 MB and takes more than a second, with `auto` 0.2 s at most. `sparkmirror_flow_*`
are always there: alerts are best based on them. `sparkmirror_metrics_level` shows what applies.

## OpenTelemetry

```properties
sparkmirror.metrics.otlp.endpoint = http://collector:4318/v1/metrics
sparkmirror.metrics.otlp.interval.ms = 60000
```

pushes the same metrics, under the same names, as OTLP over HTTP. It needs
`pip install 'sparkmirror[otel]'`. OpenTelemetry's variables for headers and certificates apply
(`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`). Summaries go out as two sums.
"""


def render_metrics() -> str:
    """The whole of docs/metrics.md."""
    mirror = [row for row in KAFKA_ROWS if row.name.startswith("kafka_connect_mirror_")]
    connect = [row for row in KAFKA_ROWS if row.name.startswith("kafka_connect_")]
    clients = [row for row in KAFKA_ROWS if row not in connect]
    parts = [
        INTRODUCTION,
        *_section("Our own", OWN_ROWS),
        *_section("MirrorMaker 2", mirror),
        *_section("Connect", [row for row in connect if row not in mirror]),
        *_section("Consumers and producers", clients),
        *_section("JVM of Spark's driver", JVM_ROWS),
        *_section("Process", PROCESS_ROWS),
        "## Left out",
        "",
        "MirrorMaker 2 has these under Strimzi's rules; here a value would say nothing:",
        "",
        "| names (regular expression) | why |",
        "|---|---|",
        *(f"| `{_cell(each.pattern)}` | {each.reason} |" for each in LEFT_OUT),
        "",
    ]
    return "\n".join(parts)


def _section(title: str, rows: Iterable[MetricRow]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        "| name | type | labels | meaning | from |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{row.name}` | {row.type} | {', '.join(row.labels) or '-'} | {_cell(row.help)} "
        f"| {_cell(row.origin)} |"
        for row in rows
    ]
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with --check only compare; returns the exit code."""
    paths = [Path(item) for item in arguments if not item.startswith("--")]
    path = paths[0] if paths else DEFAULT_PATH
    text = render_metrics()
    if "--check" not in arguments:
        path.write_text(text, "ascii")
        return 0
    if path.is_file() and path.read_text("ascii") == text:
        return 0
    sys.stderr.write(f"{path} does not match the table of metrics; run {COMMAND}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
