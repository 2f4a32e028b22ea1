"""Settings: key tables, `.properties` files, config providers, MirrorMaker 2's expansion."""
