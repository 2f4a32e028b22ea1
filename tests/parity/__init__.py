"""Genuine MirrorMaker 2 beside ours: the definition of compatible."""
