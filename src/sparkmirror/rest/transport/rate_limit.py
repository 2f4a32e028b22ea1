"""Limits how often something may happen, for each of many clients.

Runs on: worker, in the event loop of the REST server.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

# Beyond this number, the client that was quiet for longest is forgotten.
_MOST_CLIENTS = 10_000


class RateLimit:
    """A bucket of permits per client: `burst` at most, `per_second` come back."""

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, client: str) -> int:
        """When to try again, in whole seconds; 0: there is a permit."""
        left = self._left(client)
        return 0 if left >= 1 else math.ceil((1 - left) / self._per_second)

    def take(self, client: str) -> None:
        """Use up a permit, if there is one."""
        left = self._left(client)
        if left >= 1:
            self._buckets[client] = (left - 1, self._clock())
            self._buckets.move_to_end(client)
        while len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)

    def _left(self, client: str) -> float:
        left, since = self._buckets.get(client, (self._burst, 0.0))
        return min(self._burst, left + (self._clock() - since) * self._per_second)


def client_of(host: str) -> str:
    """The client of an address; an IPv6 client has a whole /64 network."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
