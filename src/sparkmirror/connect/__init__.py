"""The control plane: connectors, their tasks, and the topics that hold their state."""
