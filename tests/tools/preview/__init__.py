"""Tests of plan and explain, without clusters."""
