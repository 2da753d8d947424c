"""The page in a browser: what a reader does with it."""

import base64
import json
import re
import time

import pytest

from hstree.builders import build
from hstree.data.vocabulary import Vocabulary
from hstree.experiments import results
from hstree.tree import Tree
from hstree.tree.branches import Branches
from hstree.tree.weight_rows import edge_mass
from tests.report import browser
from tests.report.comparison import leave, write_page

#: Words that would end a script, an attribute or a line of text, were they not taken as data.
HOSTILE = ["</script><script>document.title='broken'</script>", "\"'><img src=x onerror=alert(1)>",
           "<!--", "&amp;", "שלום", "🌲", "a\\u0062", "‮reversed"]  # fmt: skip
WORDS = ["the", "of", "bank", "river", "loan", "Bank", *HOSTILE, *(f"w{i}" for i in range(120))]
COUNTS = [2_000 // (i + 1) + 1 for i in range(len(WORDS))]


def trees():
    vocabulary = Vocabulary(WORDS, COUNTS)
    # "bank" (label 2) in two places, under nodes with names.
    rest = [~i for i in range(len(WORDS)) if i not in (2, 3, 4)]
    senses = Tree.from_children(
        WORDS,
        [[1, 2, 3], [~2, ~3], [~2, ~4], rest],
        counts=COUNTS,
        names=["entity", "shore.n.01", "institution.n.01", None],
        meta={"method": "wordnet"},
    )
    classes = Tree.from_children(
        WORDS,
        [[*range(1, 31)], *([~i for i in range(n, len(WORDS), 30)] for n in range(30))],
        counts=COUNTS,
        names=[None, *(f"class {n}" for n in range(30))],
        meta={"method": "classes"},
    )
    return {
        "huffman": build("huffman", vocabulary),
        "random": build("random", vocabulary),
        "senses </script>": senses,
        "classes": classes,
        "flat": build("flat", vocabulary),
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_page(leave(tmp_path_factory.mktemp("comparison"), trees()))


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A page with a usual number of candidates."""
    candidate_trees = {
        f"{name}{layer}": tree
        for layer in ("", " + ngrams", " + ngrams words=3")
        for name, tree in trees().items()
        if "<" not in name
    }
    return write_page(leave(tmp_path_factory.mktemp("usual"), candidate_trees))


@pytest.fixture(scope="module")
def once_opened(page):
    driver = browser.start()
    browser.opened(driver, page)
    yield Reader(driver)
    driver.quit()


@pytest.fixture
def opened(once_opened):
    """The page with one tree, as far as that matters: opening it again would take a second."""
    once_opened.run("for (const e of document.querySelectorAll('.folded')) e.open = true")
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
        shown = "" if name == "none" else name
        self.wait(lambda: pane.text.split("\n")[0] == shown)

    def wait(self, done):
        deadline = time.monotonic() + 10
        while not done():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)

    def complaints(self):
        return [e for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]

    def overlapping(self):
        """Pairs of texts of one figure whose boxes overlap by more than a pixel."""
        return self.run(
            "return [...document.querySelectorAll('.chart')].flatMap((chart) => {"
            "  const texts = [...chart.querySelectorAll('text')]"
            "    .filter((t) => t.getClientRects().length)"
            "    .map((t) => [t.textContent, t.getBoundingClientRect()]);"
            "  return texts.flatMap(([one, a], i) => texts.slice(i + 1).filter(([, b]) =>"
            "    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1"
            "    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)"
            "    .map(([other]) => [chart.closest('figure').id, one, other]));"
            "})"
        )


def test_the_page_opens_without_a_complaint_and_asks_nothing_of_a_network(once_opened, page):
    browser.opened(once_opened.driver, page)
    assert once_opened.complaints() == []
    events = [
        json.loads(e["message"])["message"] for e in once_opened.driver.get_log("performance")
    ]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    foreign = [url for url in asked if not url.startswith(("data:", "blob:", page.as_uri()))]
    assert page.as_uri() in asked
    assert foreign == []


# Table, plots, answer


def test_no_two_texts_of_a_figure_overlap(opened):
    assert opened.overlapping() == []


def test_the_candidate_that_is_recommended_stands_out(opened):
    assert opened.one(".verdict h2").text.startswith("Recommended: flat (validation perplexity ")
    in_plot = opened.one("#plot-seconds .best").get_attribute("data-row")
    assert opened.one("#rows .best").get_attribute("data-row") == in_plot
    assert opened.one("#rows tr.best bdi").text == "flat"


def test_the_files_are_inside_the_page(opened, page):
    contents = {
        link.get_attribute("download"): base64.b64decode(link.get_attribute("href").split(",")[1])
        for link in opened.all("a[download]")
    }
    folder = page.parent
    best = results.load(folder).best
    assert contents["tree.json"] == (folder / best.tree_file).read_bytes()
    lines = contents["results.csv"].splitlines()
    assert sorted(lines) == sorted(results.csv_text(results.load(folder)).splitlines())
    figures = [figure.get_attribute("id") for figure in opened.all("figure")]
    assert {f"{figure}.{ending}" for figure in figures for ending in ("svg", "csv")} <= set(
        contents
    )


def test_a_cell_has_one_number_until_its_candidate_is_opened(opened):
    row = opened.one("#rows tr.best")
    details = row.find_elements("css selector", "td small")
    assert len(details) >= 3
    assert not any(detail.is_displayed() for detail in details)
    row.find_element("css selector", ".opens").click()
    assert "training 2.86" in details[1].text
    row.find_element("css selector", ".opens").click()
    assert not details[1].is_displayed()


def test_the_table_has_the_best_candidate_first(opened):
    names = [cell.text.split()[0] for cell in opened.all("#rows tbody th")]
    assert names[0] == opened.one("#rows tr.best bdi").text
    assert names[-1] == "kn3"  # cannot be recommended
    values = [float(cell.text) for cell in opened.all("#rows td:nth-child(2)")[:-1]]
    assert values == sorted(values)


def test_the_table_sorts_by_a_column(opened):
    title = next(b for b in opened.all("thead button") if b.text == "training")
    title.click()
    title.click()
    first, *_, last = opened.all("#rows tbody tr")
    assert first.find_element("css selector", "bdi").text == "huffman"
    assert last.find_element("css selector", "bdi").text == "kn3"  # without a speed


# The explorer


def test_a_search_shows_and_highlights_all_codes_of_a_word(opened):
    opened.search("bank")
    assert "2 codes, 4 decisions in total" in opened.one(".codes .summary").text
    neighbours = [line.text for line in opened.all(".neighbours")]
    assert neighbours[0].startswith("Neighbours: river ")
    assert neighbours[1].startswith("Neighbours: loan ")
    highlighted = [line.text for line in opened.all(".node.lit")]
    assert sum("shore.n.01" in text or "institution.n.01" in text for text in highlighted) == 2
    leaves = opened.all(".node.leaf.lit")
    assert [leaf.find_element("css selector", ".content").text for leaf in leaves] == ["bank"] * 2
    counts = dict(zip(WORDS, COUNTS, strict=True))
    share = 100 * counts["bank"] / 2 / sum(COUNTS)
    assert leaves[0].find_element("css selector", ".share").text == f"{share:.3g}%"


def test_a_neighbour_is_a_button_that_searches_for_it(opened):
    opened.search("Bank")  # words that differ in case are different
    assert opened.one("#status strong").text == "Bank"
    opened.search("RIVER")
    assert opened.one("#status strong").text == "river"
    opened.one(".neighbours [data-word=bank]").click()
    assert opened.one("#status strong").text == "bank"


def test_an_unknown_word_is_reported(opened):
    opened.search("bnak")
    assert "bnak is not in the vocabulary" in opened.one("#status").text


def test_words_are_completed_as_they_are_typed(opened):
    opened.one("#word").clear()
    opened.one("#word").send_keys("ri")
    options = [o.get_attribute("value") for o in opened.all("#completions option")]
    assert options == ["river"]


def test_the_branches_of_a_wide_node_are_added_in_steps_the_largest_first(opened):
    opened.one(".tree details details summary").send_keys("\n")  # by keyboard
    opened.wait(lambda: len(opened.all(".node.leaf")) == 50)
    assert [leaf.text.split("\n")[1] for leaf in opened.all(".node.leaf")[:2]] == ["the", "of"]
    opened.one(".tree .more").click()
    assert len(opened.all(".node.leaf")) == 100
    opened.search("w119")  # the last branch is shown with the first ones
    assert opened.one(".node.leaf.lit .content").text == "w119"


def test_two_trees_are_shown_side_by_side(opened):
    opened.choose("tree-b", "classes")
    opened.search("bank")
    first, second = (summary.text for summary in opened.all(".codes .summary"))
    assert first.startswith("bank: 2 codes")
    assert second.startswith("bank: 1 code, 2 decisions;")


def test_a_word_is_only_ever_text(opened):
    for word in HOSTILE[:4]:
        opened.search(word)
        assert opened.run("return document.querySelector('#status strong').textContent") == word
        assert opened.driver.title == "Which tree for made up?"
        assert opened.all("img") == []


@pytest.mark.parametrize("i", range(4))
def test_the_page_computes_what_the_library_does(opened, i):
    """Masses and most frequent words of every node: `hstree.tree` is the oracle."""
    name, tree = list(trees().items())[i]
    mass, words = opened.driver.execute_async_script(
        "const [name, done] = arguments;"
        "(async () => {"
        "  const packed = JSON.parse(document.getElementById('page').textContent).trees;"
        "  const words = await Words.unpack(packed);"
        "  const tree = await LabelTree.unpack(packed.trees.find((t) => t.name === name), words);"
        "  const nodes = Array.from({ length: tree.nNodes }, (_, n) => n);"
        "  const texts = nodes.map((n) => tree.frequentWords(n).map((w) => words.text[w]));"
        "  done([[...tree.mass], texts]);"
        "})()", name,
    )  # fmt: skip
    assert mass == pytest.approx(edge_mass(tree, tree.counts).tolist(), rel=1e-12)
    frequent = Branches(tree, 6).frequent.tolist()
    assert words == [[tree.labels[i] for i in ids if i >= 0] for ids in frequent]


# Without JavaScript, on paper, on a telephone


@pytest.fixture(scope="module")
def without_scripts(page):
    driver = browser.start(javascript=False)
    driver.get(page.as_uri())
    yield Reader(driver)
    driver.quit()


def test_without_javascript_the_page_has_its_answer_table_plots_and_files(without_scripts):
    assert without_scripts.one(".verdict h2").text.startswith("Recommended: flat ")
    assert without_scripts.one("#rows tr.best bdi").text == "flat"
    for fold in without_scripts.all(".folded > summary"):
        fold.click()
    charts = without_scripts.all(".chart")
    assert len(charts) == 3
    assert all(chart.size["height"] > 100 for chart in charts)
    assert "needs JavaScript" in without_scripts.one("#explorer noscript").text
    assert not any(e.is_displayed() for e in without_scripts.all(".scripted"))


def test_a_candidate_unticked_leaves_the_plots_without_javascript(without_scripts):
    groups = without_scripts.all(".chart .row-1")
    assert len(groups) == 3
    without_scripts.one("tr[data-row='1'] .mark").click()
    assert not any(group.is_displayed() for group in groups)
    without_scripts.one("tr[data-row='1'] .mark").click()
    assert groups[0].is_displayed()


@pytest.fixture
def emulated(opened):
    def emulate(width, media="", scheme="light"):
        opened.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False,
        })  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        opened.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": features}
        )

    yield emulate
    emulate(1280)


@pytest.fixture(scope="module")
def usual_tab(once_opened, usual):
    """The tab of a usual comparison's page."""
    driver = once_opened.driver
    page_tab = driver.current_window_handle
    driver.switch_to.new_window("tab")
    browser.opened(driver, usual)
    tab = driver.current_window_handle
    driver.switch_to.window(page_tab)
    return tab


@pytest.fixture
def first_shown(once_opened, usual_tab, emulated):
    """The page of a usual comparison as it is first shown."""
    driver = once_opened.driver
    page_tab = driver.current_window_handle
    driver.switch_to.window(usual_tab)
    yield once_opened
    emulated(1280)
    driver.switch_to.window(page_tab)


@pytest.mark.parametrize(("width", "highest"), [(1400, 3000), (420, 5000)])
def test_the_page_fits_the_window_and_begins_with_the_answer(first_shown, emulated, width, highest):
    emulated(width)
    assert first_shown.run("return document.documentElement.scrollHeight") <= highest
    assert first_shown.run("return document.documentElement.scrollWidth") <= width
    for selector in (".verdict h2", "#plot-seconds svg", ".get pre"):
        bottom = first_shown.run(
            "return [...document.querySelectorAll(arguments[0])].find((e) => e.checkVisibility())"
            ".getBoundingClientRect().bottom", selector)  # fmt: skip
        assert bottom <= 900, selector


def test_it_is_printed_on_three_pages_at_most_without_controls(first_shown, emulated):
    printed = first_shown.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pages = re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))
    assert 1 <= len(pages) <= 3
    emulated(760, media="print")
    assert not any(e.is_displayed() for e in first_shown.all(".search, .links"))
    assert first_shown.run("return document.documentElement.scrollWidth") <= 760
    cells = first_shown.run(
        "return [...document.querySelectorAll('#rows td')].filter((e) => e.checkVisibility())"
        ".map((e) => [parseFloat(getComputedStyle(e).fontSize), e.scrollWidth - e.clientWidth])"
    )
    assert min(size for size, _ in cells) >= 9
    assert max(cut for _, cut in cells) <= 0
    beyond = first_shown.run(
        "const right = (e) => e.getBoundingClientRect().right;"
        "return [...document.querySelectorAll('.chart text')].filter((e) => e.checkVisibility())"
        ".map((e) => right(e) - right(e.closest('svg')))"
    )
    assert max(beyond) <= 1


def test_a_narrow_table_has_perplexities_and_seconds_and_the_rest_by_a_tap(first_shown, emulated):
    emulated(420)
    candidate = first_shown.one("#rows tbody tr")
    shown = [cell for cell in candidate.find_elements("css selector", "td") if cell.is_displayed()]
    assert [cell.text for cell in shown] == ["102.3", "93.00", "32.2"]
    candidate.find_element("css selector", ".opens").click()
    cells = candidate.find_elements("css selector", "td[data-value]")
    assert len(cells) >= 10
    assert all(cell.is_displayed() for cell in cells)
    title = "return getComputedStyle(arguments[0], '::before').content"
    assert first_shown.run(title, cells[3]) == '"vs flat, perplexity"'
    assert first_shown.overlapping() == []
    candidate.find_element("css selector", ".opens").click()


def test_the_figures_follow_the_colours_of_the_page(opened, emulated):
    colour = (
        "return ['.tick text', '.row-0 .dot'].map("
        "(s) => getComputedStyle(document.querySelector(`#plot-seconds ${s}`)).fill)"
    )
    emulated(1280)
    assert opened.run(colour) == ["rgb(34, 38, 43)", "rgb(39, 108, 162)"]
    emulated(1280, scheme="dark")
    assert opened.run(colour) == ["rgb(226, 229, 233)", "rgb(80, 155, 213)"]
    emulated(760, scheme="dark", media="print")  # paper is white, even if the screen is dark
    assert opened.run(colour) == ["rgb(34, 34, 34)", "rgb(39, 108, 162)"]
