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


@pytest.fixture
def short_turns(monkeypatch):
    """Measure speeds for no longer than a batch."""
    for name in ("TURN", "TESTING_TURN"):
        monkeypatch.setattr(f"hstree.experiments.throughput.{name}", 0.001)
