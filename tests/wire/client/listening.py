"""What the tests of one cluster's client share: a listener, and learning about topics."""

from __future__ import annotations

from tests.wire.rigs import Rig


class Listener:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.connected: list[int] = []
        self.metadata = 0

    def on_connected(self, node: int) -> None:
        self.connected.append(node)

    def on_metadata(self) -> None:
        self.metadata += 1


def learn(rig: Rig, *topics: str) -> None:
    rig.metadata.track(topics)
    rig.run_until(
        lambda: set(topics) <= {tp.topic for tp in rig.metadata.leaders},
        lambda: rig.metadata.leaders,
    )
