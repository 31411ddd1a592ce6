# SPDX-License-Identifier: Apache-2.0
"""Measurements, one module each: `python -m benchmarks.NAME`. Each prints its figures and names the machine."""
