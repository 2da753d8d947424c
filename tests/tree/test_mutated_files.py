"""Valid tree files, changed at random: a tree, or a clear error, and nothing else."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hstree.errors import HstreeError
from hstree.tree import Tree, load
from hstree.tree.files import ENDINGS, save
from tests.campaigns.mutators import mutated
from tests.strategies import children_of, trees
from tests.tree.documents import TREE


@settings(max_examples=200)
@given(
    tree=st.just(TREE) | trees(max_labels=6),
    ending=st.sampled_from(ENDINGS),
    random=st.randoms(use_true_random=False),
)
def test_a_mutated_file_is_a_tree_or_a_clear_error(tmp_path_factory, tree, ending, random):
    path = tmp_path_factory.getbasetemp() / f"mutant{ending}"
    save(tree, path)
    path.write_bytes(mutated(random, path.name, path.read_bytes()))
    try:
        tree = load(path)
    except HstreeError as error:
        message = str(error)
    else:
        message = f"{path} is valid"
        children = children_of(tree)
        again = Tree.from_children(tree.labels, children, counts=tree.counts, names=tree.names)
        assert again == tree
    assert len(message.splitlines()) == 1
    assert str(path) in message
