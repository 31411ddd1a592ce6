# SPDX-License-Identifier: Apache-2.0
"""What a running kernel's state is: fragments of warps, memories' barriers, asynchronous operations."""
