# SPDX-License-Identifier: Apache-2.0
"""Kernels on a real GPU, through PyCUDA: validated against the matrix product, and measured against cuBLAS."""

from __future__ import annotations
