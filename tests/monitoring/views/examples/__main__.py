"""`python -m tests.monitoring.views.examples FOLDER` writes one JSON file for each endpoint."""

import sys
from pathlib import Path

from tests.monitoring.views.examples.endpoints import main

if __name__ == "__main__":
    main(Path(sys.argv[1]))
