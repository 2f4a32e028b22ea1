"""The `sparkmirror` command: one module per subcommand, all listed in `main`."""
