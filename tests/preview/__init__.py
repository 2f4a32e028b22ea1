"""Tests of plan and explain on real brokers: nothing is written, and run does what plan says."""
