"""What genuine Kafka Connect answers, and the comparison of our worker with it."""
