"""One flow under load, handed over between MirrorMaker 2 and sparkmirror, again and again."""
