# SPDX-License-Identifier: Apache-2.0
"""`python -m tmagen` is `tmagen`."""

from __future__ import annotations

import sys

from tmagen.cli import main

sys.exit(main())
