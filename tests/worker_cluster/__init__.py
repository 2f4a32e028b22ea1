"""Worker processes on real brokers: killed, frozen, restarted, and asked odd things."""
