import pytest

from hstree import LanguageModel


@pytest.fixture
def trainings(monkeypatch):
    """The trees that models are trained on, in order."""
    trees = []
    fit = LanguageModel.fit

    def noted(self, *texts, **options):
        trees.append(self.tree)
        return fit(self, *texts, **options)

    monkeypatch.setattr(LanguageModel, "fit", noted)
    return trees
