"""Matches names with Python's own engine, in a process that ends when a match takes too long.

Runs on: a separate process that `name_patterns` starts; it imports no other module of ours. Each
line of its input is JSON, [pattern, name]; each line of its output is true or false.
"""

import json
import re
import signal
import sys
from typing import IO

# CPU time, so that a busy machine makes no difference. A match normally takes microseconds.
SECONDS = 2.0


def serve(requests: IO[str], responses: IO[str], seconds: float = SECONDS) -> None:
    """Match until the input ends. Only ending the process can stop an endless match."""
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    for line in requests:
        pattern, name = json.loads(line)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        found = re.compile(pattern, re.ASCII).fullmatch(name) is not None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        responses.write(json.dumps(found) + "\n")
        responses.flush()


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
