"""etc: explore with designed coverage, then commit."""
