"""Memory that a copy task frees stays with the process. Runs on: executor.

Merging tiny batches takes and frees a few hundred kilobytes at a time. glibc gives such memory back
to the kernel at once, and each page of it costs a page fault when it is taken again: more than a
third of the time that merging takes.
"""

from __future__ import annotations

import ctypes

# Parameters of mallopt, from malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3

# Freed memory at the end of the heap that is kept.
KEPT_BYTES = 32 << 20
# Larger pieces have mappings of their own, which are unmapped when they are freed: receive buffers.
LARGEST_BYTES = 4 << 20


def keep_freed_memory() -> bool:
    """Whether the C library accepted the settings; others than glibc may not have them."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
