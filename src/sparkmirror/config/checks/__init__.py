"""Checks across settings: keys without effect, flows in a circle, forbidden overrides.

May import: config.clients, config.mirror_configs, config.worker_config.
Start reading: advice.
"""
