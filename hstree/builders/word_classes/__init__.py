"""Word classes: exchange, merging, bins, k-means."""
