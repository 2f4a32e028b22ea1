"""MirrorMaker 1 and `sparkmirror legacy`, which takes its place, on real brokers."""
