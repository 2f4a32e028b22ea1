"""The files that settings are written in: Java's .properties, config providers, JVM options.

May import: config.config_def, config.patterns.
Start reading: properties, providers.
"""
