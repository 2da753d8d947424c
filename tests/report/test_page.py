"""The page in a browser: what a reader does with it."""

import json
import time

import pytest

from hstree.builders import build
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree
from hstree.tree.branches import most_frequent
from hstree.tree.weight_rows import edge_mass
from tests.report import browser
from tests.report.comparison import leave

pytest.importorskip("bokeh", reason="the report extra is not installed")

from hstree import report

#: Words that would end a script, an attribute or a line of text, were they not taken as data.
HOSTILE = ["</script><script>document.title='broken'</script>", "\"'><img src=x onerror=alert(1)>",
           "<!--", "&amp;", "שלום", "🌲", "a\\u0062", "‮reversed"]  # fmt: skip
WORDS = ["the", "of", "bank", "river", "loan", "Bank", *HOSTILE, *(f"w{i}" for i in range(120))]
COUNTS = [2_000 // (i + 1) + 1 for i in range(len(WORDS))]


def trees():
    vocabulary = Vocabulary(WORDS, COUNTS)
    huffman = build("huffman", vocabulary)
    other = build("random", vocabulary)
    # "bank" (label 2) in two places, under nodes with names.
    rest = [~i for i in range(len(WORDS)) if i not in (2, 3, 4)]
    senses = Tree.from_children(
        WORDS,
        [[1, 2, 3], [~2, ~3], [~2, ~4], rest],
        counts=COUNTS,
        names=["entity", "shore.n.01", "institution.n.01", None],
        meta={"method": "wordnet"},
    )
    return {
        "huffman": huffman, "random": other, "senses </script>": senses,
        "flat": build("flat", vocabulary),
    }  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report.write(leave(tmp_path_factory.mktemp("comparison"), trees()))


@pytest.fixture(scope="module")
def chromium():
    driver = browser.start()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def once_opened(chromium, page):
    browser.opened(chromium, page)
    return Reader(chromium)


@pytest.fixture
def opened(once_opened):
    """The page with one tree, as far as that matters: opening it anew would take a second."""
    once_opened.choose("tree-a", "senses </script>")
    once_opened.choose("tree-b", "none")
    once_opened.search("")
    return once_opened


class Reader:
    """Somebody in front of the page."""

    def __init__(self, driver):
        self.driver = driver

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def search(self, word):
        self.run("document.getElementById('word').value = arguments[0]", word)
        self.one(".search [type=submit]").click()

    def choose(self, which, name):
        self.run(
            "const s = document.getElementById(arguments[0]);"
            "s.value = [...s.options].find((o) => o.text === arguments[1]).value;"
            "s.dispatchEvent(new Event('change'))", which, name,
        )  # fmt: skip
        pane = self.all(".pane")[which == "tree-b"]
        title = pane.find_element("css selector", "h3")
        self.wait(lambda: not pane.is_displayed() if name == "none" else title.text == name)

    def wait(self, done):
        deadline = time.monotonic() + 10
        while not done():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)

    def press(self, key):
        self.driver.switch_to.active_element.send_keys(key)

    def focus(self):
        return self.run("return document.activeElement.getAttribute('aria-label')")


def test_the_page_opens_without_a_complaint_and_asks_nothing_of_a_network(chromium, page):
    browser.opened(chromium, page)
    log = chromium.get_log("browser")
    assert [entry for entry in log if entry["level"] in ("SEVERE", "WARNING")] == []
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    foreign = [url for url in asked if not url.startswith(("data:", "blob:", page.as_uri()))]
    assert page.as_uri() in asked
    assert foreign == []


def test_the_policy_forbids_what_the_page_does_not_need(opened):
    said = opened.driver.execute_async_script(
        "const done = arguments[0];"
        "fetch('https://example.org/').then(() => done('fetched'), () => done('refused'))"
    )
    assert said == "refused"
    blocked = [
        entry for entry in opened.driver.get_log("browser")
        if "Content Security Policy" in entry["message"]
    ]  # fmt: skip
    assert blocked


def test_every_plot_is_drawn(opened):
    assert len(opened.all("figure")) == 6
    opened.wait(
        lambda: opened.run(
            "return [...document.querySelectorAll('.plot')].every((p) => p.clientHeight > 100)"
        )
    )


def test_a_row_unticked_leaves_the_plots(opened):
    visible = (
        "return Bokeh.documents.flatMap((d) => d.roots().flatMap((r) => r.renderers))"
        ".filter((r) => r.name === 'row-0').map((r) => r.visible)"
    )
    assert set(opened.run(visible)) == {True}
    opened.one("[data-row=row-0]").click()
    assert set(opened.run(visible)) == {False}
    opened.one("[data-row=row-0]").click()
    assert set(opened.run(visible)) == {True}


def test_the_table_sorts_by_a_column(opened):
    title = next(b for b in opened.all("thead button") if b.text == "speed")
    title.click()
    title.click()
    first, *_, last = opened.all("#rows tbody tr")
    assert first.find_element("css selector", "bdi").text == "huffman"
    assert last.find_element("css selector", "bdi").text == "kn3"  # without a speed


def test_the_table_fits_a_wide_window_and_says_what_its_marks_mean(opened):
    width = opened.run(
        "const t = document.querySelector('.scrolling'); return [t.scrollWidth, t.clientWidth]"
    )
    assert width[0] <= width[1]
    first, second, *_ = opened.all("#rows tbody tr")
    titles = [button.text for button in opened.all("thead button")]
    test, from_text = (titles.index(title) for title in ("test", "from text"))
    cells = [row.find_elements("css selector", "th, td") for row in (first, second)]
    assert "*" not in cells[0][test].text
    assert cells[1][test].text.splitlines()[0].endswith("*")  # stopped at the limit of epochs
    assert cells[0][test].text.endswith("n = 2")
    assert cells[0][from_text].text.endswith("flat")
    assert "marked *, stopped at it" in opened.one(".conditions").text


def test_a_search_finds_a_word_and_shows_all_its_codes(opened):
    opened.search("bank")
    assert "2 codes of 4 decisions" in opened.one(".codes .summary").text
    beside = [company.text for company in opened.all(".company")]
    assert beside[0].startswith("Beside it: river, ")
    assert beside[1].startswith("Beside it: loan, ")
    lit = [row.get_attribute("aria-label") for row in opened.all("[role=treeitem].lit")]
    assert [label.split(",")[1].strip() for label in lit if "leaves" in label] == [
        "shore.n.01", "institution.n.01",
    ]  # fmt: skip
    assert sum(label.endswith("a word: bank") for label in lit) == 2


def test_the_decisions_give_shares_and_what_the_other_branch_holds(opened):
    opened.search("river")
    decisions = opened.all(".decisions li")
    counts = dict(zip(WORDS, COUNTS, strict=True))
    here = counts["bank"] / 2 + counts["river"]
    assert f"{100 * counts['river'] / here:.1f}%" in decisions[1].text
    assert f"{100 * counts['bank'] / 2 / here:.1f}%" in decisions[1].text
    assert decisions[1].find_element("css selector", ".refused .words").text == "bank"
    assert "at shore.n.01" in decisions[1].text


def test_a_slip_is_offered_what_is_near(opened):
    opened.search("bnak")
    assert "bnak is not one of the" in opened.one("#found").text
    opened.one("#found button").click()
    assert opened.one("#found strong").text == "bank"


def test_the_completions_work_by_keyboard(opened):
    field = opened.one("#word")
    field.clear()
    field.send_keys("ri")
    options = [option.text.split("\n")[0] for option in opened.all("[role=option]")]
    assert options[0] == "river"
    field.send_keys("\ue015\ue007")  # down, enter
    assert opened.one("#found strong").text == "river"
    assert not opened.one("#completions").is_displayed()


def test_a_branch_opens_by_click_and_closes_again(opened):
    opened.choose("tree-a", "huffman")
    row = opened.all("[role=treeitem][aria-expanded=false]")[0]
    before = len(opened.all("[role=treeitem]"))
    row.click()
    assert row.get_attribute("aria-expanded") == "true"
    assert len(opened.all("[role=treeitem]")) == before + 2
    row.click()
    assert len(opened.all("[role=treeitem]")) == before


def test_a_tree_is_walked_by_keyboard(opened):
    opened.run("document.querySelector('[role=treeitem][tabindex=\"0\"]').focus()")
    assert opened.focus().startswith("root, entity, 100%")
    opened.press("\ue014")  # right: into the open root
    assert opened.focus().startswith("branch 2, ")  # the most massive of three comes first
    opened.press("\ue015")  # down
    assert opened.focus().startswith("branch 0, shore.n.01")
    opened.press("\ue014")  # right: opens
    opened.press("\ue014")  # right: goes in
    assert opened.focus().endswith("a word: bank")
    opened.press("\ue012")  # left: out
    opened.press("\ue012")  # left: closes
    assert opened.focus().startswith("branch 0, shore.n.01")
    assert opened.all("[role=treeitem][tabindex='0']")[0].get_attribute("aria-expanded") == "false"
    opened.press("\ue010")  # end
    opened.press("\ue011")  # home
    assert opened.focus().startswith("root")
    assert len(opened.all("[role=treeitem][tabindex='0']")) == 1


def test_a_wide_node_comes_in_pages_the_most_massive_first(opened):
    opened.choose("tree-a", "flat")
    leaves = opened.all("[role=treeitem].leaf")
    assert [leaf.text.split("\n")[1] for leaf in leaves[:2]] == ["the", "of"]
    assert len(leaves) == 50
    opened.one("[role=treeitem].more").click()
    assert len(opened.all("[role=treeitem].leaf")) == 100
    opened.search("w119")  # far down: shown nevertheless
    assert opened.one("[role=treeitem].lit").text.split("\n")[1] == "w119"


def test_percentages_at_decisions_say_of_what_they_are(opened):
    opened.search("bank")
    assert "of the text under that node" in opened.one(".codes .caption").text


def test_two_trees_are_shown_side_by_side(opened):
    opened.choose("tree-b", "flat")
    opened.search("bank")
    summaries = [summary.text for summary in opened.all(".codes .summary")]
    assert len(summaries) == 2
    assert summaries[0].startswith("bank: 2 codes")
    assert summaries[1].startswith("bank: 1 code of 1 decision;")
    assert "in both trees: " in opened.one(".agreement").text
    assert "river" not in opened.one(".agreement").text or "river" in opened.all(".company")[0].text


@pytest.mark.parametrize("word", HOSTILE)
def test_a_word_is_only_ever_text(opened, word):
    opened.search(word)
    assert opened.run("return document.querySelector('#found strong').textContent") == word
    assert opened.driver.title == "Which tree for made up?"
    assert opened.all("img") == []


@pytest.mark.parametrize("place", range(4))
def test_the_page_computes_what_the_library_does(opened, place):
    """Masses and most frequent words of every node: `hstree.tree.branches` is the oracle."""
    tree = list(trees().values())[place]
    mass, words = opened.driver.execute_async_script(
        "const [place, done] = arguments;"
        "(async () => {"
        "  const packed = data('packed-trees'), words = await Words.unpack(packed);"
        "  const tree = await LabelTree.unpack(packed.trees[place], words);"
        "  const nodes = Array.from({ length: tree.nNodes }, (_, n) => n);"
        "  done([[...tree.mass], nodes.map((n) => tree.wordsOf(n).map((w) => words.text[w]))]);"
        "})()", place,
    )  # fmt: skip
    assert mass == pytest.approx(edge_mass(tree, tree.counts).tolist(), rel=1e-12)
    ids = most_frequent(tree, 6).tolist()
    assert words == [[tree.labels[i] for i in best if i >= 0] for best in ids]
