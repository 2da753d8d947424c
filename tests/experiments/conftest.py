import pytest

from hstree import LanguageModel


@pytest.fixture
def trainings(monkeypatch):
    """The trees that models are trained on, in order."""
    trees = []
    fit = LanguageModel.fit
    monkeypatch.setattr(
        LanguageModel, "fit", lambda self, *texts: trees.append(self.tree) or fit(self, *texts)
    )
    return trees
