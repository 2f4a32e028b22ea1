"""How requests and responses are framed on a connection, and how much of them is read at once.

Runs on: executor and worker.
"""

from __future__ import annotations

import struct

from sparkmirror.batches.header import Buffer

# A response's size and correlation id.
FRAME = struct.Struct(">ii")
# A request's size, API key, API version, correlation id and the length of the client id.
REQUEST = struct.Struct(">ihhih")
# Responses to produce requests are some 60 bytes: many come with one read. The start of a large
# fetch response that lands here is copied once, which is 64 KB of several MB.
SCRATCH_BYTES = 64 * 1024
# A large response is read in pieces of about this size, not as its packets come: measured, 1 GB
# takes 2,000 turns of the loop instead of 12,000 with 2 MB, and with 4 MB another 7 % less CPU.
LARGE_READ_BYTES = 4 << 20
# Over a long line far less than TCP's window, which Linux begins with 64 KB and lets grow with what
# is read: a sender that has filled it waits for a round trip.
LONG_LINE_READ_BYTES = 64 << 10
# Larger than any response a broker of ours may send: fetch.max.bytes is an int32 anyway.
LARGEST_FRAME = (1 << 31) - 1


def drop_sent(outbox: list[Buffer], sent: int) -> None:
    """Remove the first `sent` bytes from what waits to be written."""
    done = 0
    if sent == sum(map(len, outbox)):
        outbox.clear()
        return
    for piece in outbox:
        if sent < len(piece):
            break
        sent -= len(piece)
        done += 1
    del outbox[:done]
    if sent:
        outbox[0] = memoryview(outbox[0])[sent:]
