"""MirrorMaker 1's options and files as settings of one flow.

May import: config.mm2 and below.
Start reading: mirror_maker_1.
"""
