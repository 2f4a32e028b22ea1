"""Consumer groups move to the target: what they read again there, and what they miss."""
