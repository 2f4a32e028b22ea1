"""MirrorMaker 2's own integration tests, retold for sparkmirror between real brokers.

Each test has the name of the one it retells, of MirrorConnectorsIntegrationBaseTest,
DedicatedMirrorIntegrationTest and MirrorConnectorsWithCustomForwardingAdminIntegrationTest, and
asserts what that one asserts, with the same numbers: 10 partitions, 10 records in each, 100 rounds
of them for the translation of old offsets. The reruns of the whole class with other settings are
here:

    IdentityReplicationIntegrationTest           the parameter `identity` (long)
    MirrorConnectorsIntegrationTransactionsTest  a second topic in every test
    MirrorConnectorsIntegrationSSLTest           the parameter `ssl` (long)

What differs from the originals:

- They create connectors by REST on two clusters of three Connect workers, for each test. Here
  many flows share a `sparkmirror run` process, and every test has topics and groups of its own;
  test_restart_replication_by_rest has a Connect worker, one, and restarts by requests as they do.
- The brokers of `ssl` have a plain listener too, for the tests' own clients; the mirror knows the
  one with TLS only.
- With the custom forwarding admin only its own four tests run, on brokers with authorizers and
  without logins; the originals rerun the whole class there, with SASL.
- offset.flush.interval.ms is 500, not 5,000, and offset.storage.partitions 3, not 25: less to wait.
- Time limits are 90 s for everything (originals: 20 to 30 s), because the machine is shared.
- Translated offsets must be exact; the originals allow for the distance of two offset syncs.

What is missing, because the program lacks it: exactly once
(MirrorConnectorsIntegrationExactlyOnceTest), clusters of dedicated nodes (testMultiNodeCluster),
and metrics (testConnectorMetrics*).
"""
