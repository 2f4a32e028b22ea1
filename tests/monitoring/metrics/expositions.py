"""What /metrics said, as samples; and Prometheus's own opinion of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


class Exposition:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = list(text_string_to_metric_families(text))

    @property
    def names(self) -> set[str]:
        """Of families, as in their TYPE lines."""
        lines = self.text.splitlines()
        return {line.split()[2] for line in lines if line.startswith("# TYPE ")}

    def samples(self, name: str, /, **labels: str) -> list[Sample]:
        """Those with these labels, and maybe others."""
        return [
            sample
            for sample in self._all()
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name: str, /, **labels: str) -> float:
        """Of the only sample."""
        found = self.samples(name, **labels)
        assert len(found) == 1, (name, labels, found)
        return float(found[0].value)

    def _all(self) -> Iterator[Sample]:
        for family in self.families:
            yield from family.samples


def complaints(text: str) -> dict[str, str]:
    """What `promtool check metrics` says, by metric; it fails for text that is no exposition."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    assert not any("error while linting" in line for line in lines), lines
    return dict(line.split(" ", 1) for line in lines if line)
