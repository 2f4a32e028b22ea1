"""Kafka's own MirrorClient, asked about a target of MirrorMaker 2 and about one of ours."""
