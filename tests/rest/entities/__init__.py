"""Tests of `sparkmirror.rest.entities`."""
