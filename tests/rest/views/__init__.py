"""The views over HTTP: who may read them, the page's files, and the stream."""
