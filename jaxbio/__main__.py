"""python -m jaxbio."""

import sys

from jaxbio.cli import main

sys.exit(main())
