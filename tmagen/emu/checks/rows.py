# SPDX-License-Identifier: Apache-2.0
"""The rows of a vector of clocks.

ORDER, what happens before; SHARED and GLOBAL, the ordinary accesses that a proxy fence has made visible to the
asynchronous proxy; TENSOR, what happens before for tensor memory, where relaxed barriers count; SCOPE, what happens
before without arrivals on another CTA's mbarrier whose scope is the own CTA; MAPS, the accesses that a fence has
released to those who read tensor maps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ORDER, SHARED, GLOBAL, TENSOR, SCOPE, MAPS = range(6)
ROWS = 6
FENCE_ROWS = (SHARED, GLOBAL, MAPS)
Vector = npt.NDArray[np.int64]
