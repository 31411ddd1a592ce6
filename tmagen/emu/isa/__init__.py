"""The instructions: one module per family, one function per opcode. `families` fills the registry."""
