"""The page in a browser: what a reader does with it."""

import base64
import json
import re
import time

import pytest

from hstree.builders import build
from hstree.data.vocabulary import Vocabulary
from hstree.experiments import results
from hstree.experiments.results import WordFigures, WordTable
from hstree.tree import Tree
from hstree.tree.branches import Branches
from hstree.tree.weight_rows import edge_mass
from tests.report import browser
from tests.report.comparison import leave, write_page

#: Words that would end a script, an attribute or a line of text, were they not taken as data.
HOSTILE = ["</script><script>document.title='broken'</script>", "\"'><img src=x onerror=alert(1)>",
           "<!--", "&amp;", "שלום", "🌲", "a\\u0062", "‮reversed"]  # fmt: skip
WORDS = ["the", "of", "bank", "river", "loan", "Bank", *HOSTILE, *(f"w{i}" for i in range(120))]
#: Parts of the page in which the answer's row stands out.
PARTS = ("#plot-seconds", "#rows")
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
    huffman, drawn, flat = (build(name, vocabulary) for name in ("huffman", "random", "flat"))
    of_rows = {"huffman": huffman, "random": drawn, "senses </script>": senses}
    return of_rows | {"classes": classes, "flat": flat}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_page(leave(tmp_path_factory.mktemp("comparison"), trees()))


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A page of as many rows as are usual, with the words that they help."""
    of_rows = {f"{name}{over}": tree for over in ("", " + ngrams", " + ngrams words=3")
               for name, tree in trees().items() if "<" not in name}  # fmt: skip
    word = WordFigures(word="bank", count=2, gained=0.2, share=0.7, contexts=[])
    table = WordTable(row="huffman", against="flat", gained=2, lost=1, helped=[word], hurt=[word])
    return write_page(leave(tmp_path_factory.mktemp("usual"), of_rows, words=[table]))


@pytest.fixture(scope="module")
def once_opened(page):
    driver = browser.start()
    browser.opened(driver, page)
    yield Reader(driver)
    driver.quit()


@pytest.fixture
def opened(once_opened):
    """The page with one tree, as far as that matters: opening it anew would take a second."""
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
        title = pane.find_element("css selector", "h3")
        self.wait(lambda: not pane.is_displayed() if name == "none" else title.text == name)

    def wait(self, done):
        deadline = time.monotonic() + 10
        while not done():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)

    def press(self, key):
        self.driver.switch_to.active_element.send_keys(key)

    def complaints(self):
        return [e for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]

    def address(self):
        return self.run("return Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")

    def blocks(self):
        """Level, left edge and width of the blocks of the first picture, and their texts."""
        return self.run(
            "return [...document.querySelector('.levels').children].flatMap((row, level) =>"
            "[...row.children].map((b) =>"
            "[level, parseFloat(b.style.left), parseFloat(b.style.width), b.title]))"
        )

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


def test_the_row_that_is_recommended_stands_out(opened):
    assert opened.one(".said h2").text.startswith("Recommended: flat (validation perplexity ")
    best = [opened.one(f"{part} .best").get_attribute("data-row") for part in PARTS]
    assert best[0] == best[1]
    assert opened.one("#rows tr.best bdi").text == "flat"


def test_the_files_are_inside_the_page(opened, page):
    contents = {
        link.get_attribute("download"): base64.b64decode(link.get_attribute("href").split(",")[1])
        for link in opened.all("a[download]")
    }
    folder = page.parent
    best = results.load(folder).best
    assert contents["tree.json"] == (folder / best.tree_file).read_bytes()
    assert contents["results.csv"] == results.csv_text(results.load(folder))
    figures = [figure.get_attribute("id") for figure in opened.all("figure")]
    assert {f"{figure}.{ending}" for figure in figures for ending in ("svg", "csv")} <= set(
        contents
    )


def test_the_table_sorts_by_a_column(opened):
    title = next(b for b in opened.all("thead button") if b.text == "training")
    title.click()
    title.click()
    first, *_, last = opened.all("#rows tbody tr")
    assert first.find_element("css selector", "bdi").text == "huffman"
    assert last.find_element("css selector", "bdi").text == "kn3"  # without a speed


# The explorer


def test_a_search_finds_a_word_and_shows_all_its_codes(opened):
    opened.search("bank")
    assert "2 codes of 4 decisions" in opened.one(".codes .summary").text
    beside = [company.text for company in opened.all(".company")]
    assert beside[0].startswith("Beside it: river ")
    assert beside[1].startswith("Beside it: loan ")
    lit = [node.text for node in opened.all(".node.lit")]
    assert sum("shore.n.01" in text or "institution.n.01" in text for text in lit) == 2
    assert sum(node.find_element("css selector", ".words").text == "bank"
               for node in opened.all(".node.leaf.lit")) == 2  # fmt: skip
    blocks = {b.get_attribute("title").split(",")[0] for b in opened.all(".block.lit")}
    assert blocks >= {"shore.n.01", "institution.n.01"}


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
    assert "bnak is not one of the" in opened.one("#said").text
    opened.one("#said button").click()
    assert opened.one("#said strong").text == "bank"


def test_words_are_completed_as_they_are_typed(opened):
    opened.one("#word").clear()
    opened.one("#word").send_keys("ri")
    options = [o.get_attribute("value") for o in opened.all("#completions option")]
    assert options[0] == "river"


def test_a_tree_is_walked_by_keyboard(opened):
    def focus():
        line = "return document.activeElement.closest('.node').querySelector('.what').textContent"
        return opened.run(line)

    opened.run("document.querySelector('.tree summary').focus()")
    assert focus().startswith("entity the")
    opened.press("\ue014")  # right: into the open root
    assert focus().startswith("the")  # the most massive of three comes first
    opened.press("\ue015")  # down
    assert focus().startswith("shore.n.01")
    opened.press("\ue014")  # right: opens
    opened.press("\ue014")  # right: goes in
    assert focus().strip() == "bank"
    opened.press("\ue012")  # left: out
    assert focus().startswith("shore.n.01")
    opened.press("\ue012")  # left: closes
    opened.press("\ue015")
    assert focus().startswith("institution.n.01")
    opened.press("\ue011")  # home
    assert focus().startswith("entity")


def test_a_wide_node_comes_in_pages_the_most_massive_first(opened):
    opened.one(".tree .below summary").click()  # the node of all words but three
    opened.wait(lambda: opened.all(".node.leaf .words"))
    leaves = opened.all(".node.leaf .words")
    assert [leaf.text for leaf in leaves[:2]] == ["the", "of"]
    assert len(leaves) == 50
    opened.one(".tree .more").click()
    assert len(opened.all(".node.leaf")) == 100
    opened.search("w119")  # far down: shown nevertheless
    assert opened.one(".node.leaf.lit .words").text == "w119"


def test_the_picture_of_a_class_tree_has_the_words_of_the_largest_classes(opened):
    opened.choose("tree-a", "classes")
    cards = [card.text.replace("\n", " ") for card in opened.all(".cards .card")]
    assert len(cards) == 25
    assert cards[-1] == "and 6 smaller branches"
    assert "the" in cards[0]
    assert "w16" in cards[0]
    assert "class" not in " ".join(cards)
    opened.one(".cards .card").click()
    assert opened.address()["node"] == "1"


def test_the_picture_of_a_tree_is_as_wide_as_the_text(opened):
    counts = dict(zip(WORDS, COUNTS, strict=True))
    drawn = opened.blocks()
    assert drawn[0][:3] == [0, 0, 100]
    level = [block for block in drawn if block[0] == 1]
    assert sum(width for _, _, width, _ in level) == pytest.approx(100, abs=1)
    shore = next(block for block in level if "shore.n.01" in block[3])
    expected = 100 * (counts["bank"] / 2 + counts["river"]) / sum(COUNTS)
    assert shore[2] == pytest.approx(expected, rel=1e-5)


def test_a_click_enlarges_a_branch_and_another_goes_back(opened):
    opened.one(".block[title*='shore.n.01']").click()
    first = opened.blocks()[0]
    assert first[1:3] == [0, 100]
    assert "shore.n.01" in first[3]
    assert opened.address()["node"] == "1"
    opened.one(".icicle-path button").click()
    assert "node" not in opened.address()


def test_a_neighbour_is_a_link_that_searches_it(opened):
    opened.search("bank")
    link = opened.one(".company a[data-word=river]")
    assert "word=river" in link.get_attribute("href")
    link.click()
    assert opened.one("#said strong").text == "river"
    assert opened.address()["word"] == "river"


def test_the_address_keeps_what_is_shown(opened):
    opened.choose("tree-b", "classes")
    opened.search("bank")
    opened.one(".block[title*='shore.n.01']").click()
    url = opened.driver.current_url
    opened.driver.get("about:blank")
    opened.driver.get(url)
    browser.wait(opened.driver)
    state = {"tree": "senses </script>", "node": "1", "other": "classes", "word": "bank"}
    assert opened.address() == state
    assert opened.one("#said strong").text == "bank"
    assert "shore.n.01" in opened.blocks()[0][3]
    assert [title.text for title in opened.all(".pane h3")] == ["senses </script>", "classes"]


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("tree=flat&word=%00&node=99", "classes"),
        ("tree=random&node=1.5&othernode=x", "random"),
    ],
)
def test_an_address_of_nothing_shows_the_first_tree(opened, page, state, shown):
    opened.driver.get("about:blank")
    opened.driver.get(f"{page.as_uri()}#{state}")
    browser.wait(opened.driver)
    assert opened.one(".pane h3").text == shown
    assert opened.one(".icicle-path strong").text == "root"
    assert opened.complaints() == []


def test_two_trees_are_shown_side_by_side(opened):
    opened.choose("tree-b", "classes")
    opened.search("bank")
    first, second = (summary.text for summary in opened.all(".codes .summary"))
    assert first.startswith("bank: 2 codes")
    assert second.startswith("bank: 1 code of 2 decisions;")
    assert "in both trees" in opened.one(".agreement").text


def test_a_word_is_only_ever_text(opened):
    for word in HOSTILE[:4]:
        opened.search(word)
        assert opened.run("return document.querySelector('#said strong').textContent") == word
        assert opened.driver.title == "Which tree for made up?"
        assert opened.all("img") == []


def unpacked(opened, i, result):
    """What a script returns of a tree and its words."""
    return opened.driver.execute_async_script(
        "const [i, done] = arguments;"
        "(async () => {"
        "  const packed = data().trees, words = await Words.unpack(packed);"
        "  const tree = await LabelTree.unpack(packed.trees[i], words);"
        f"  done({result});"
        "})()", i,
    )  # fmt: skip


def test_characteristic_words_are_those_of_the_highest_lift(opened):
    """Half of "bank" is under the node, and all of "river": what is more typical comes first."""
    best = unpacked(opened, 2, "tree.characteristic(1)")
    counts = dict(zip(WORDS, COUNTS, strict=True))
    share = (counts["bank"] / 2 + counts["river"]) / sum(COUNTS)
    by_count = sorted(WORDS, key=lambda word: -counts[word])
    assert [by_count[word] for word in best["words"]] == ["river", "bank"]
    assert best["lift"] == pytest.approx(1 / share)
    assert unpacked(opened, 2, "tree.characteristic(0).words") == []


@pytest.mark.parametrize("i", range(4))
def test_the_page_computes_what_the_library_does(opened, i):
    """Masses and most frequent words of every node: `hstree.tree` is the oracle."""
    tree = list(trees().values())[i]
    nodes = "Array.from({ length: tree.nNodes }, (_, n) => n)"
    words = f"{nodes}.map((n) => tree.wordsOf(n).map((w) => words.text[w]))"
    mass, words = unpacked(opened, i, f"[[...tree.mass], {words}]")
    assert mass == pytest.approx(edge_mass(tree, tree.counts).tolist(), rel=1e-12)
    ids = Branches(tree, 6).frequent.tolist()
    assert words == [[tree.labels[i] for i in best if i >= 0] for best in ids]


# Without JavaScript, on paper, on a telephone


@pytest.fixture(scope="module")
def without_scripts(page):
    driver = browser.start(javascript=False)
    driver.get(page.as_uri())
    yield Reader(driver)
    driver.quit()


def test_without_javascript_the_page_has_its_answer_table_plots_and_files(without_scripts):
    assert without_scripts.one(".said h2").text.startswith("Recommended: flat ")
    assert without_scripts.one("#rows tr.best bdi").text == "flat"
    for fold in without_scripts.all(".folded > summary"):
        fold.click()
    charts = without_scripts.all(".chart")
    assert len(charts) == 7
    assert all(chart.size["height"] > 100 for chart in charts)
    assert "needs JavaScript, which is off" in without_scripts.one("#explorer noscript").text
    assert not any(e.is_displayed() for e in without_scripts.all(".scripted"))


def test_a_row_unticked_leaves_the_plots_without_javascript(without_scripts):
    groups = without_scripts.all(".chart .row-1")
    assert len(groups) == 7
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
def tabs(once_opened, usual):
    """The tabs of the page and of a usual comparison's page."""
    driver = once_opened.driver
    of_page = driver.current_window_handle
    driver.switch_to.new_window("tab")
    browser.opened(driver, usual)
    of_usual = driver.current_window_handle
    driver.switch_to.window(of_page)
    return of_page, of_usual


@pytest.fixture
def first_shown(once_opened, tabs, emulated):
    """The page of a usual comparison as it is first shown."""
    of_page, of_usual = tabs
    once_opened.driver.switch_to.window(of_usual)
    yield once_opened
    emulated(1280)
    once_opened.driver.switch_to.window(of_page)


@pytest.mark.parametrize(("width", "highest"), [(1400, 3000), (420, 5000)])
def test_the_page_is_short_and_as_wide_as_the_window(first_shown, emulated, width, highest):
    emulated(width)
    assert first_shown.run("return document.documentElement.scrollHeight") <= highest
    assert first_shown.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1400, 420])
def test_the_first_screen_has_the_answer_a_picture_and_the_command(first_shown, emulated, width):
    emulated(width)
    ends = [first_shown.run(
        "return [...document.querySelectorAll(arguments[0])].find((e) => e.checkVisibility())"
        ".getBoundingClientRect().bottom", selector) for selector in
        (".said h2", "#plot-seconds svg", ".get pre")]  # fmt: skip
    assert max(ends) <= 900


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
    row = first_shown.one("#rows tbody tr")
    shown = [cell for cell in row.find_elements("css selector", "td") if cell.is_displayed()]
    assert [cell.text.split("\n")[0] for cell in shown] == ["179.3", "163.0", "30.2"]
    row.find_element("css selector", ".opens").click()
    cells = row.find_elements("css selector", "td[data-value]")
    assert len(cells) >= 10
    assert all(cell.is_displayed() for cell in cells)
    title = "return getComputedStyle(arguments[0], '::before').content"
    assert first_shown.run(title, cells[3]) == '"to flat, perplexity"'
    assert first_shown.overlapping() == []
    row.find_element("css selector", ".opens").click()


def test_the_figures_follow_the_colours_of_the_page(opened, emulated):
    colour = (
        "return ['.tick text', '.row-0 .dot'].map("
        "(s) => getComputedStyle(document.querySelector(`#plot-speed ${s}`)).fill)"
    )
    emulated(1280)
    assert opened.run(colour) == ["rgb(34, 38, 43)", "rgb(39, 108, 162)"]
    emulated(1280, scheme="dark")
    assert opened.run(colour) == ["rgb(226, 229, 233)", "rgb(80, 155, 213)"]
    emulated(760, scheme="dark", media="print")  # paper is white, whatever the screen is
    assert opened.run(colour) == ["rgb(34, 34, 34)", "rgb(39, 108, 162)"]
