"""flow-ucb: optimism on batches, with everything that costs no privacy."""
