"""The data plane on Spark: session, task runner, copy task, control link. Only it uses pyspark."""
