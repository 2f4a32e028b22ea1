"""`python -m sparkmirror`: the same as the program `sparkmirror`."""

from __future__ import annotations

from sparkmirror.cli.main import main

if __name__ == "__main__":
    main()
