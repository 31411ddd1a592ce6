# SPDX-License-Identifier: Apache-2.0
"""Every check, with what a person needs to understand and mend it."""
