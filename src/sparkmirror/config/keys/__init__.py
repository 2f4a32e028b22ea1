"""Key tables: name, type, default and status of every setting. Docs derive from them.

May import: config.config_def, config.patterns, config.findings.
Start reading: connector_keys, client_keys.
"""
