"""Tests of permissions, on a real cluster with an authorizer."""
