"""The page in a real browser, served by a worker that answers from fixtures.

May import: anything of tests. Start with: fixture_worker.FixtureWorker, then test_views.
"""
