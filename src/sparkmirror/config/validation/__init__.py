"""What Connect's validate and config requests return: every key with its value and errors.

May import: config.connector_spec and below.
Start reading: connector_validation.
"""
