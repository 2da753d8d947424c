"""Words that WordNet spells, but a text does not mean so."""

from hstree.builders.wordnet import open_taxonomy
from hstree.builders.wordnet.lookup import look_up


def test_function_words_are_outside_wordnet_in_any_case():
    words = ["It", "it", "HE", "at", "a", "I", "can", "between", "was", "helium", "dog", "bank"]
    found = look_up(words, open_taxonomy("builtin"), "first", 8)
    inside = [word for word, n in zip(words, found.n_senses, strict=True) if n]
    assert inside == ["was", "helium", "dog", "bank"]
    assert [words[i] for i in found.word] == inside


def test_a_single_letter_is_no_element_or_unit():
    """Neither the Penn Treebank's N, which is any number, nor an initial."""
    words = ["N", "n", "B", "k", "x", "2", "is", "nitrogen"]
    found = look_up(words, open_taxonomy("builtin"), "all", 8)
    inside = [word for word, n in zip(words, found.n_senses, strict=True) if n]
    assert inside == ["2", "is", "nitrogen"]
