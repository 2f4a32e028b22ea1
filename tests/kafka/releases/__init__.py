"""Every supported release on real brokers: as source, as target, upgraded; and one too old."""
