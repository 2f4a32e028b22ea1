"""The whole program against real brokers that fail."""
