"""Nothing that the program writes has a secret in it."""
