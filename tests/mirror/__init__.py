"""Tests of MirrorMaker 2's rules."""
