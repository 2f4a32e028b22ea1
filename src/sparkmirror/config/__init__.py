"""Settings, from text to types: all errors of a file at once, under the file's own names.

May import: errors, types.
Start reading: config_def, connector_spec, mm2.
"""
