"""A user's device: plays the public policy, encodes, seals, sends."""
