"""Tests of `sparkmirror.connect.storage`."""
