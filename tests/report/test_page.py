"""The page in a browser: what a reader does with it."""

import base64
import json
import math
import random
import time

import numpy as np
import pytest

from hstree import report
from hstree.builders import build
from hstree.data.vocabulary import Vocabulary
from hstree.report.scales import extent, tick_label, ticks, units
from hstree.tree import Tree
from hstree.tree.branches import most_frequent
from hstree.tree.weight_rows import edge_mass
from tests.report import browser
from tests.report.comparison import leave

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


def texts_that_overlap(opened):
    """Pairs of texts of one chart whose boxes overlap by more than a pixel."""
    return opened.run(
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


def ticks_of(opened, chart, axis):
    return opened.run(
        "return [...document.querySelectorAll(`#${arguments[0]} .${arguments[1]}.ticks text`)]"
        ".map((t) => t.textContent)", chart, axis,
    )  # fmt: skip


def untick(opened, *rows):
    for row in rows:
        opened.one(f"#show-{row}").click()


def test_every_plot_is_drawn_with_words_and_data(opened):
    figures = opened.all("figure")
    assert len(figures) == 11
    for figure in figures:
        chart = figure.find_element("css selector", ".chart")
        assert chart.size["height"] > 100
        alt = chart.get_attribute("aria-describedby")
        assert opened.run("return document.getElementById(arguments[0]).textContent", alt)
        assert figure.find_elements("css selector", "details table tbody tr")


def test_no_two_texts_of_a_chart_overlap(opened):
    assert texts_that_overlap(opened) == []
    untick(opened, 0, 3)
    assert texts_that_overlap(opened) == []
    untick(opened, 0, 3)


def test_the_page_draws_what_python_drew(opened):
    """Hiding rows and showing them again leaves the charts as the library wrote them."""
    drawn = (
        "return [...document.querySelectorAll('.chart')].map((c) => ["
        "[...c.querySelectorAll('text')].map((t) => [t.textContent, Math.round(t.getBBox().y)]),"
        "[...c.querySelectorAll('[points]')].map((l) => l.getAttribute('points').split(/[ ,]/)"
        ".map((v) => Math.round(v)))])"
    )
    opened.driver.refresh()
    browser.wait(opened.driver)
    before = opened.run(drawn)
    untick(opened, 1)
    untick(opened, 1)
    after = opened.run(drawn)
    for one, other in zip(before, after, strict=True):
        assert [text for text, _ in one[0]] == [text for text, _ in other[0]]
        for (_, y), (_, z) in zip(one[0], other[0], strict=True):
            assert abs(y - z) <= 1
        for line, again in zip(one[1], other[1], strict=True):
            assert np.abs(np.subtract(line, again)).max(initial=0) <= 1


def test_ticks_are_the_same_in_both_languages(opened):
    draw = random.Random(0)
    cases = []
    for _ in range(400):
        scale = draw.choice(["linear", "log", "count", "zero"])
        low, high = sorted(10 ** draw.uniform(-2, 6) for _ in range(2))
        high = math.ceil(min(high, 1e4)) if scale == "count" else high
        cases.append([units(low, scale), units(high, scale), scale, draw.choice([200, 262]),
                      draw.random() < 0.5])  # fmt: skip
    found = opened.run(
        "return arguments[0].map(([low, high, scale, length, vertical]) => {"
        "  const [a, b] = extentOf(low, high, scale);"
        "  return ticksOf(a, b, scale, length, vertical).map(tickLabel);"
        "})", cases,
    )  # fmt: skip
    expected = [
        [tick_label(t) for t in ticks(*extent(low, high, scale), scale, length, vertical=vertical)]
        for low, high, scale, length, vertical in cases
    ]
    assert found == expected


def test_a_row_unticked_leaves_the_plots_which_rescale(opened):
    before = ticks_of(opened, "plot-speed", "x")
    shown = (
        "return [...document.querySelectorAll('.chart .row-3')]"
        ".map((g) => getComputedStyle(g).display)"
    )
    assert "none" not in opened.run(shown)
    untick(opened, 3)  # flat, the slowest
    assert set(opened.run(shown)) == {"none"}
    after = ticks_of(opened, "plot-speed", "x")
    assert after != before
    assert len(after) >= 2
    untick(opened, 3)
    assert ticks_of(opened, "plot-speed", "x") == before


def test_strips_move_up_where_others_are_hidden(opened):
    place = (
        "const box = (s) => document.querySelector(s).getBoundingClientRect().top;"
        "return box('#plot-costs .row-2') - box('#plot-costs svg')"
    )
    before = opened.run(place)
    untick(opened, 0, 1)
    assert opened.run(place) < before - 20
    untick(opened, 0, 1)
    assert opened.run(place) == pytest.approx(before)


def test_the_front_is_of_the_rows_shown(opened):
    front = "return document.querySelector('#plot-speed .front').getAttribute('points').split(' ')"
    # huffman, then those of lower perplexity and lower speed: all four trees
    assert len(opened.run(front)) == 7
    untick(opened, 1)
    assert len(opened.run(front)) == 5
    untick(opened, 0, 2)
    assert len(opened.run(front)) == 1  # flat alone
    untick(opened, 0, 1, 2)
    assert len(opened.run(front)) == 7


def test_a_row_that_is_beaten_is_grey_while_what_beats_it_is_shown(opened):
    grey = """
    const groups = document.querySelectorAll("#plot-frontier-seconds .row.beaten[data-row]");
    return [...new Set([...groups].map((group) => Number(group.dataset.row)))].sort();
    """
    colour = """
    const dot = document.querySelector("#plot-frontier-seconds .row[data-row='1'] .dot");
    return getComputedStyle(dot).fill;
    """
    # the n-gram model, row 4, is the quickest, and only flat, row 3, predicts better
    assert opened.run(grey) == [0, 1, 2]
    beaten = opened.run(colour)
    untick(opened, 4)
    assert opened.run(grey) == []
    assert opened.run(colour) != beaten
    untick(opened, 4)
    assert opened.run(grey) == [0, 1, 2]


def test_with_all_rows_hidden_nothing_breaks(opened):
    every = range(len(opened.all("[data-show]")))
    untick(opened, *every)
    untick(opened, *every)
    assert [e for e in opened.driver.get_log("browser") if e["level"] == "SEVERE"] == []


def test_the_slider_shows_the_answer_for_its_distance(opened):
    def answer():
        return next(e for e in opened.all(".answer") if e.is_displayed())

    def slide(value):
        opened.run(
            "const s = document.getElementById('within'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input'))", value,
        )  # fmt: skip
        best = opened.one("#rows tr.best")
        return best.find_element("css selector", "bdi").text

    start = opened.run("return document.getElementById('within').defaultValue")
    assert float(start) == 0.03
    assert slide(0) == "flat"  # the lowest perplexity
    assert "within 0% of" in answer().text
    assert slide(0.5) == "huffman"  # the fastest
    assert answer().text.count("Use huffman") == 1
    assert "within 50% of the lowest" in answer().text
    assert slide(0.03) == "flat"


def test_the_files_are_inside_the_page(opened, page):
    opened.run(
        "const s = document.getElementById('within'); s.value = 0.5;"
        "s.dispatchEvent(new Event('input'))"
    )
    links = [link for link in opened.all(".downloads a") if link.is_displayed()]
    assert [link.get_attribute("download") for link in links] == ["tree.json", "results.csv"]
    for link, path in zip(links, ["runs/row-0/seed-0/tree.json", "results.csv"], strict=True):
        content = base64.b64decode(link.get_attribute("href").partition(",")[2])
        assert content == (page.parent / path).read_bytes()


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
    assert beside[0].startswith("Beside it: river ")
    assert beside[1].startswith("Beside it: loan ")
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


def address(opened):
    return opened.run("return Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")


def blocks(opened, pane=0):
    """Level, left edge and width of the blocks of a picture, as shares, and their texts."""
    return opened.run(
        "const picture = document.querySelectorAll('.pane')[arguments[0]].querySelector('.levels');"
        "return [...picture.children].flatMap((row, level) => [...row.children].map((b) =>"
        "[level, parseFloat(b.style.left), parseFloat(b.style.width), b.title]))", pane,
    )  # fmt: skip


def test_the_picture_of_a_tree_is_as_wide_as_the_text(opened):
    counts = dict(zip(WORDS, COUNTS, strict=True))
    drawn = blocks(opened)
    assert drawn[0][:3] == [0, 0, 100]
    level = [block for block in drawn if block[0] == 1]
    assert sum(width for _, _, width, _ in level) == pytest.approx(100, abs=1)
    shore = next(block for block in level if "shore.n.01" in block[3])
    expected = 100 * (counts["bank"] / 2 + counts["river"]) / sum(COUNTS)
    assert shore[2] == pytest.approx(expected, rel=1e-5)
    inside = [b for b in drawn if b[0] == 2 and -0.01 < b[1] - shore[1] < shore[2] - 0.01]
    assert sum(width for _, _, width, _ in inside) == pytest.approx(shore[2], rel=1e-4)


def test_a_click_enlarges_a_branch_and_another_goes_back(opened):
    opened.one(".block[title*='shore.n.01']").click()
    first = blocks(opened)[0]
    assert first[1:3] == [0, 100]
    assert "shore.n.01" in first[3]
    assert address(opened)["node"] == "1"
    opened.one(".icicle-path button").click()
    assert "node" not in address(opened)
    assert len(blocks(opened)) > 4


def test_the_codes_of_a_word_are_lit_in_the_picture(opened):
    opened.search("bank")
    lit = opened.all(".block.lit")
    assert {block.get_attribute("title").split(",")[0] for block in lit} >= {
        "shore.n.01", "institution.n.01",
    }  # fmt: skip


def test_characteristic_words_are_those_of_the_highest_lift(opened):
    """Half of "bank" is under the node, and all of "river": what is more typical comes first."""
    lift = opened.driver.execute_async_script(
        "const done = arguments[0];"
        "(async () => {"
        "  const packed = data('packed-trees'), words = await Words.unpack(packed);"
        "  const tree = await LabelTree.unpack(packed.trees[2], words);"
        "  const { words: best, lift } = tree.characteristic(1);"
        "  done([best.map((w) => words.text[w]), lift, tree.characteristic(0).words]);"
        "})()"
    )
    counts = dict(zip(WORDS, COUNTS, strict=True))
    share = (counts["bank"] / 2 + counts["river"]) / sum(COUNTS)
    assert lift[0] == ["river", "bank"]
    assert lift[1] == pytest.approx(1 / share)
    assert lift[2] == []


def test_a_neighbour_is_a_link_that_searches_it(opened):
    opened.search("bank")
    link = opened.one(".company a[data-word=river]")
    assert "word=river" in link.get_attribute("href")
    link.click()
    assert opened.one("#found strong").text == "river"
    assert address(opened)["word"] == "river"


def test_the_address_keeps_what_is_shown(opened, page):
    opened.choose("tree-b", "flat")
    opened.search("bank")
    opened.one(".block[title*='shore.n.01']").click()
    url = opened.driver.current_url
    opened.driver.get("about:blank")
    opened.driver.get(url)
    browser.wait(opened.driver)
    assert address(opened) == {
        "tree": "senses </script>", "node": "1", "other": "flat", "word": "bank",
    }  # fmt: skip
    assert opened.one("#found strong").text == "bank"
    assert "shore.n.01" in blocks(opened)[0][3]
    assert [pane.find_element("css selector", "h3").text for pane in opened.all(".pane")] == [
        "senses </script>", "flat",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("tree=nothing&word=%00&node=99", "senses </script>"),
        ("tree=flat&other=x&node=-1", "flat"),
        ("tree=flat&node=1.5&othernode=x", "flat"),
    ],
)
def test_an_address_of_nothing_shows_the_first_tree(opened, page, state, shown):
    opened.driver.get("about:blank")
    opened.driver.get(f"{page.as_uri()}#{state}")
    browser.wait(opened.driver)
    assert opened.one(".pane h3").text == shown
    assert blocks(opened)[0][1:3] == [0, 100]
    assert [e for e in opened.driver.get_log("browser") if e["level"] == "SEVERE"] == []


def test_choosing_tree_b_keeps_the_place_of_tree_a(opened):
    opened.choose("tree-a", "flat")
    first_row = (
        "const t = document.querySelector('.pane .tree');"
        "return [...t.children].find((r) => r.offsetTop + r.offsetHeight > t.scrollTop).ariaLabel"
    )
    opened.run("document.querySelector('.pane .tree').scrollTop = 600")
    before = opened.run(first_row)
    opened.choose("tree-b", "huffman")
    assert opened.run(first_row) == before
    assert opened.run("return document.querySelector('.pane .tree').scrollTop") > 100
    opened.choose("tree-b", "none")
    assert opened.run(first_row) == before


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


# Without JavaScript, on paper, on a telephone


@pytest.fixture(scope="module")
def without_scripts(page):
    driver = browser.start(javascript=False)
    driver.get(page.as_uri())
    yield Reader(driver)
    driver.quit()


def test_without_javascript_the_page_has_its_answer_table_plots_and_files(without_scripts):
    shown = [e for e in without_scripts.all(".answer") if e.is_displayed()]
    assert len(shown) == 1
    assert shown[0].text.startswith("Which tree?\nNone: use the flat softmax")
    assert without_scripts.one("#rows tr.best bdi").text == "flat"
    assert len(without_scripts.all(".downloads a")) >= 2
    charts = without_scripts.all(".chart")
    assert len(charts) == 11
    assert all(chart.size["height"] > 100 for chart in charts)
    assert "needs JavaScript, which is off" in without_scripts.one("#explorer noscript").text
    assert not any(e.is_displayed() for e in without_scripts.all(".scripted"))


def test_without_javascript_a_row_is_hidden_all_the_same(without_scripts):
    group = without_scripts.one("#plot-speed .row-3")
    assert group.is_displayed()
    without_scripts.one("#show-3").click()
    assert not group.is_displayed()
    without_scripts.one("#show-3").click()


def emulate(driver, width, **media):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False,
    })  # fmt: skip
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "media": media.get("media", ""),
        "features": [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}],
    })  # fmt: skip


@pytest.fixture
def emulated(opened):
    yield lambda *size, **media: emulate(opened.driver, *size, **media)
    emulate(opened.driver, 1280)


def test_a_narrow_page_has_perplexity_and_speed_in_view(opened, emulated):
    emulated(420)
    assert opened.run("return document.documentElement.scrollWidth") <= 420
    titles = opened.all("#rows thead th")
    assert [title.text.split("\n")[0] for title in titles[1:3]] == ["test", "speed"]
    for title in titles[:3]:
        assert title.rect["x"] + title.rect["width"] <= 420
    assert texts_that_overlap(opened) == []


def test_the_charts_follow_the_colours_of_the_page(opened, emulated):
    colour = (
        "return ['.tick text', '.row-0 .dot'].map("
        "(s) => getComputedStyle(document.querySelector(`#plot-speed ${s}`)).fill)"
    )
    emulated(1280)
    light = opened.run(colour)
    emulated(1280, scheme="dark")
    dark = opened.run(colour)
    assert dark == ["rgb(226, 229, 233)", "rgb(80, 155, 213)"]
    assert light == ["rgb(34, 38, 43)", "rgb(39, 108, 162)"]
    emulated(760, scheme="dark", media="print")  # paper is white, whatever the screen is
    assert opened.run(colour) == ["rgb(34, 34, 34)", "rgb(39, 108, 162)"]


def test_on_paper_the_controls_are_left_out_and_nothing_is_cut(opened, emulated):
    emulated(760, media="print")
    assert not any(e.is_displayed() for e in opened.all("nav, .legend, .search, .nearly"))
    assert all(chart.is_displayed() for chart in opened.all(".chart"))
    assert opened.run("return document.documentElement.scrollWidth") <= 760
    sheet = opened.driver.execute_cdp_cmd("Page.printToPDF", {})
    assert base64.b64decode(sheet["data"]).startswith(b"%PDF")
