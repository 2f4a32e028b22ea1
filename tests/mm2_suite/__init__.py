"""MirrorMaker 2's own integration tests, retold for `sparkmirror run` between real brokers.

Each test has the name of the one it retells, of MirrorConnectorsIntegrationBaseTest and
DedicatedMirrorIntegrationTest, and asserts what that one asserts. The reruns of the whole class
with other settings are here:

    IdentityReplicationIntegrationTest           the parameter `identity`
    MirrorConnectorsIntegrationTransactionsTest  a second topic in every test

Many flows share a process, and every test has topics and groups of its own.
"""
