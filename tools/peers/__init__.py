# SPDX-License-Identifier: Apache-2.0
"""Kernels of other compilers on the emulator: `python -m tools.peers`."""
