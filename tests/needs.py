"""Reasons to skip a test: what it needs and how to get it. A run's last lines count by them."""

TORCH = "needs torch: pip install 'hstree[torch]'"
HATCHLING = "needs pip and hatchling: pip install 'hstree[test]'"
GPU = "needs a GPU that torch can use"
CHROMIUM = "needs Chromium and its driver: apt-get install chromium chromium-driver"
WORDNET = "needs WordNet in /usr/share/wordnet: apt-get install wordnet-base"
NLTK = "needs NLTK's corpora: set NLTK_DATA to their folder"
DATA = "needs data that cannot be shipped: set HSTREE_TEST_DATA to its folder"
