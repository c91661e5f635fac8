"""python -m jaxbio."""

import sys

from jaxbio.cli.main import main

if __name__ == "__main__":  # not where a process is started that draws
    sys.exit(main())
