"""What the roles say to each other."""
