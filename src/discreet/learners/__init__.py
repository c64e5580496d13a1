"""The learning: one file per algorithm family."""
