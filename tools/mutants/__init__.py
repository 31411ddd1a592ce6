# SPDX-License-Identifier: Apache-2.0
"""Kernels broken on purpose, and the rule that must tell of each."""
