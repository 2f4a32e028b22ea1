"""SASL logins: what each mechanism sends to a broker, and where its credentials come from.

Runs on: executor and worker. The mechanisms do no I/O: `authenticator` carries their messages over
a connection of ours, `kafka_python` over those of kafka-python's admin clients.
"""
