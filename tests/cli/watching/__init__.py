"""Commands that show a running mirror, at a REST server on fakes."""
