"""Files of word vectors: NumPy's, word2vec's and GloVe's."""
