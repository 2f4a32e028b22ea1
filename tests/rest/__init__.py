"""Tests of the REST API, on a herder in memory."""
