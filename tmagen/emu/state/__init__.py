"""What a running kernel's state is: fragments of warps, memories' barriers, asynchronous operations."""
