"""The program on Spark: sessions, slots, a real standalone cluster whose executors die."""
