# SPDX-License-Identifier: Apache-2.0
"""The instructions: one module per family, one function per opcode. `families` fills the registry."""
