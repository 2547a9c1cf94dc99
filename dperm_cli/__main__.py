"""``python -m dperm_cli``."""

import sys

from dperm_cli.cli import main

sys.exit(main())
