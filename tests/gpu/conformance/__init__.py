# SPDX-License-Identifier: Apache-2.0
"""Small kernels, one question each, whose answer by an H200 is recorded and held against the emulator."""
