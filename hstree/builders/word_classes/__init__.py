"""Word classes: how words are partitioned, and the trees of the parts."""
