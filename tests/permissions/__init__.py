"""Tests of rights, on a real cluster with an authorizer."""
