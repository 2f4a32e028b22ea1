"""One run of atheris, which never returns: `python -m tests.fuzz` makes it a process of its own.

An exception does not end the run: the first input of each kind is kept in the folder for cases, and
the fuzzer continues. An input that takes too long or too much memory ends it, and is kept as well.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

SLOW_SECONDS = 10
MEMORY_MB = 1500
LARGEST_INPUT_BYTES = 16 << 10


def keep_cases(run: Callable[[bytes], None], folder: Path) -> Callable[[bytes], None]:
    """Run a target; new kinds of exceptions are printed and their inputs written to `folder`."""
    known: set[str] = set()

    def guarded(data: bytes) -> None:
        try:
            run(data)
        except Exception as error:  # noqa: BLE001  whatever it is, it is what we look for
            kind = _kind(error)
            if kind not in known:
                known.add(kind)
                name = f"case-{hashlib.sha256(kind.encode()).hexdigest()[:12]}"
                (folder / name).write_bytes(data)
                print(f"\n=== {folder / name}: {kind}", flush=True)  # noqa: T201
                traceback.print_exception(error)

    return guarded


def _kind(error: BaseException) -> str:
    """Which exception, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "sparkmirror" in frame.filename] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "nowhere"
    return f"{type(error).__name__} at {place}"


def main() -> None:
    """Arguments: target, seconds, folder of the corpus, folder for cases."""
    logging.getLogger("sparkmirror").setLevel(logging.CRITICAL)  # millions of warnings
    atheris = importlib.import_module("atheris")  # it is not a requirement
    name, seconds, corpus, cases = sys.argv[1:]
    with atheris.instrument_imports(include=["sparkmirror", "kafka.protocol", "javaproperties"]):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415
    run = keep_cases(TARGETS[name].run, Path(cases))
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={SLOW_SECONDS}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-max_len={LARGEST_INPUT_BYTES}",
        f"-artifact_prefix={cases}/",
        "-print_final_stats=1",
        "-verbosity=1",
    ]
    atheris.Setup([sys.argv[0], *options, corpus], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
