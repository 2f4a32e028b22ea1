"""Runs a program that dies with its parent, even if the parent is killed with -9.

Run as a script, `tied.py PARENT_PID PROGRAM ARGS...`: requests SIGKILL from the kernel on the
parent's death, then becomes PROGRAM (same process id). It is a script and not a `preexec_fn`,
because code between fork and exec may deadlock in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent_pid: int, command: list[str]) -> None:
    """Bind this process to its parent and become `command`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the request.
    if os.getppid() != parent_pid:
        sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
