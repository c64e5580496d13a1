"""Integer noise: samplers for simulations and for people, and their compiled loops."""
