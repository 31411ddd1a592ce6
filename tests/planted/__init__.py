# SPDX-License-Identifier: Apache-2.0
"""Faults that users of such kernels have reported in public, planted in emitted text."""
