"""The world: finite MDPs, planning, simulation, environments, the Gymnasium bridge."""
