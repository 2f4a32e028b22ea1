"""`sparkmirror validate`: everything that is wrong with a file, with lines, without any cluster.

May import: tools.check, mirror, config.
Start reading: validation.
"""
