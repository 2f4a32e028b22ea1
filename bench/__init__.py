"""The benchmark: sparkmirror and genuine MirrorMaker 2 on the same brokers, in one run.

Part of the repository, not of the wheel. Run as `python -m bench`; bench/README.md explains how it
measures, and why.
"""
