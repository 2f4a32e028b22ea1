"""What the results say about the machine."""

from __future__ import annotations

import pytest

from bench.machine import cpu_model, ram_gigabytes


def test_cpu_model_is_that_of_the_first_core() -> None:
    cpuinfo = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\n\nmodel name\t: Other\n"
    assert cpu_model(cpuinfo) == "Fast CPU @ 3 GHz"


def test_cpu_without_a_name_is_its_architecture() -> None:
    assert cpu_model("processor\t: 0\nBogoMIPS\t: 50\n") != ""


def test_memory_is_in_gigabytes() -> None:
    assert ram_gigabytes("MemTotal:       24682312 kB\nMemFree: 1 kB\n") == pytest.approx(
        25.27, 0.01
    )


def test_memory_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="no line MemTotal"):
        ram_gigabytes("MemFree: 1 kB\n")
