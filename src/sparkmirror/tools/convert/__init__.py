"""From a Strimzi `KafkaMirrorMaker2` resource to this program's files and Kubernetes manifests.

Text in, text out: nothing here opens a connection, asks Kubernetes or writes into a user's folder.
Start reading at `conversion.py`. `resource.py` reads the resource, `mm2_files.py` and
`connect_files.py` write the settings, `manifests.py` the objects that run them. `ledger.py` records
what happens to each field (carried over, listed, or an error), so that none is lost silently.
"""
