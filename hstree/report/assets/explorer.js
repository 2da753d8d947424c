"use strict";
/* The tree explorer: a search field for words, and one tree or two trees side by side.

   Words reach the page as text, never as markup. */

const BRANCHES_AT_A_TIME = 50, NEIGHBOURS = 10;
/* Maximum depth to which a path is opened. */
const DEEPEST_OPENED = 120;

// Elements and numbers

function element(tag, attributes = {}, ...content) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...content);
  return node;
}

/* A word in any script, isolated so that it does not change the direction of its neighbours. */
function wordElement(text) {
  return element("bdi", {}, text);
}

/* Buttons that search for words. */
function wordButtons(words) {
  return words.flatMap((text) => [
    element("button", { type: "button", class: "chip", "data-word": text }, wordElement(text)), " "]);
}

function withSeparators(value) {
  return value.toLocaleString("en");
}

function plural(n, singular, many = `${singular}s`) {
  return `${withSeparators(n)} ${n === 1 ? singular : many}`;
}

function percentage(share) {
  return share.toLocaleString("en", { style: "percent", maximumSignificantDigits: 3 });
}

// A tree as nested details elements

class TreeView {
  #highlighted = new Set();  // edges

  constructor(tree, label) {
    this.tree = tree;
    this.root = element("div", { class: "tree", role: "group", "aria-label": label });
  }

  /* Close all nodes, then open and highlight the paths of these codes. */
  show(codes) {
    this.#highlighted = new Set(codes.flat());
    this.root.replaceChildren(this.#line(-1, 0));
    const leaf = this.root.querySelector(".leaf.lit");
    // scrollIntoView would scroll the page as well
    if (leaf !== null) this.root.scrollTop = leaf.offsetTop - this.root.clientHeight / 2;
  }

  /* Return the line of an edge, or of the root for -1. The branches below a node are added when it
     is first opened. */
  #line(edge, level) {
    const { tree } = this, child = edge < 0 ? 0 : tree.child[edge], isWord = child < 0;
    const share = edge < 0 ? 1 : tree.share(edge), isHighlighted = this.#highlighted.has(edge);
    const line = element(isWord ? "div" : "summary",
      { class: `node${isWord ? " leaf" : ""}${isHighlighted ? " lit" : ""}`, style: `--level: ${level}` },
      element("span", { class: "twisty", "aria-hidden": "true" }),
      element("span", { class: "branch" }, edge < 0 ? "root" : String(tree.branch(edge))),
      this.#content(child),
      element("span", { class: "size" }, isWord ? "" : plural(tree.leaves[child], "leaf", "leaves")),
      element("span", { class: "share" },
        element("span", { class: "bar", "aria-hidden": "true", style: `--share: ${share}` }), percentage(share)));
    if (isWord) return line;

    const below = element("div", {}), details = element("details", {}, line, below);
    const fill = () => { if (!below.hasChildNodes()) this.#addBranches(below, child, level + 1, 0); };
    details.addEventListener("toggle", fill);
    if (edge < 0 || (isHighlighted && level < DEEPEST_OPENED)) {
      fill();
      details.open = true;
    }
    return details;
  }

  /* The name of a node and its most frequent words, or a word. */
  #content(child) {
    const { tree } = this, content = element("span", { class: "content" });
    const name = tree.names?.[child] ?? null;  // a word has none
    const words = tree.frequentWords(child).map((word) => tree.words.text[word]);
    if (name !== null) content.append(element("span", { class: "name" }, wordElement(name)), " ");
    if (child < 0) content.append(...wordButtons(words));
    else content.append(...words.flatMap((text) => [element("span", { class: "chip" }, wordElement(text)), " "]));
    if (child >= 0 && tree.leaves[child] > words.length) content.append("…");
    return content;
  }

  /* Add the next branches of a node, the largest first, and a button that adds more. Highlighted
     branches are all among the first ones. */
  #addBranches(below, node, level, from) {
    const edges = [...this.tree.branches(node)], until = from + BRANCHES_AT_A_TIME;
    const added = edges.filter((edge, i) => {
      const isNext = i >= from && i < until;
      return this.#highlighted.has(edge) ? from === 0 : isNext;
    });
    below.append(...added.map((edge) => this.#line(edge, level)));
    if (until >= edges.length) return;

    const left = edges.length - until, next = Math.min(left, BRANCHES_AT_A_TIME);
    const button = element("button", { type: "button", class: "quiet more" },
      `Show ${next} of ${plural(left, "more branch", "more branches")}`);
    button.addEventListener("click", () => {
      button.remove();
      this.#addBranches(below, node, level, until);
    });
    below.append(button);
  }
}

// The codes of a word, and the words nearest to it in a tree

function codesElement(tree, codes) {
  const word = ~tree.child[codes[0].at(-1)];
  const share = codes.reduce((sum, code) => sum + tree.share(code.at(-1)), 0);
  const nDecisions = codes.reduce((sum, code) => sum + code.length, 0);
  return element("div", { class: "codes" },
    element("p", { class: "summary" }, element("strong", {}, wordElement(tree.words.text[word])),
      `: ${plural(codes.length, "code")}, ${plural(nDecisions, "decision")}${codes.length > 1 ? " in total" : ""}; `
      + `${percentage(share)} of the training tokens, one in ${withSeparators(Math.round(1 / share))}.`),
    ...codes.map((code) => codeElement(tree, code)));
}

function codeElement(tree, code) {
  const isBinary = code.every((edge) => tree.fanOut[tree.edgeNode[edge]] === 2);
  const branches = code.map((edge) => tree.branch(edge)).join(isBinary ? "" : "·");
  const neighbours = tree.neighbours(code, NEIGHBOURS).map((word) => tree.words.text[word]);
  return element("section", { class: "code" },
    element("p", {}, "Code ", element("code", {}, branches),
      ` (${plural(code.length, "decision")}, ${percentage(tree.share(code.at(-1)))} of the training tokens)`),
    element("p", { class: "neighbours" }, "Neighbours: ",
      ...(neighbours.length === 0 ? ["none"] : wordButtons(neighbours))));
}

// The explorer

/* One tree: how it was built, the codes of the searched word, and the list of its nodes. */
class Pane {
  #word = null;

  constructor(id, packedTrees, words) {
    this.packedTrees = packedTrees;
    this.words = words;
    this.select = document.getElementById(id);
    this.select.append(...packedTrees.map(({ name }, i) => element("option", { value: i }, name)));
    this.select.addEventListener("change", () => this.choose(this.select.value));
    this.root = element("article", { class: "pane", hidden: "" });
    this.tree = null;
  }

  /* Show a tree, or no tree for "". A tree is unpacked when it is chosen for the first time. */
  async choose(value) {
    this.select.value = value;
    this.root.hidden = value === "";
    if (value === "") return;

    const packed = this.packedTrees[value];
    packed.unpacked ??= LabelTree.unpack(packed, this.words);
    const tree = await packed.unpacked;
    if (this.select.value !== String(value)) return;  // another tree was chosen meanwhile

    this.tree = tree;
    this.view = new TreeView(tree, `The tree ${packed.name}`);
    this.codes = element("div", {});
    this.root.replaceChildren(element("h3", {}, wordElement(packed.name)),
      element("p", { class: "caption" }, packed.description),
      element("div", { class: "pane-body" }, this.codes, this.view.root));
    this.show(this.#word);
  }

  /* Show the codes of a word, or no codes for null. */
  show(word) {
    this.#word = word;
    if (this.tree === null) return;
    const codes = word === null ? [] : this.tree.codes(word);
    this.codes.replaceChildren(...(codes.length > 0 ? [codesElement(this.tree, codes)] : []));
    this.view.show(codes);
  }
}

class Explorer {
  static async start(data) {
    const explorer = new Explorer(data, await Words.unpack(data));
    await explorer.panes[0].choose(0);
  }

  constructor(data, words) {
    this.words = words;
    this.status = document.getElementById("status");
    this.field = document.getElementById("word");
    this.panes = ["tree-a", "tree-b"].map((id) => new Pane(id, data.trees, words));
    this.panes[1].select.prepend(element("option", { value: "", selected: "" }, "none"));
    const holder = document.getElementById("panes");
    holder.append(...this.panes.map((pane) => pane.root));

    holder.addEventListener("click", (event) => {
      const button = event.target.closest("[data-word]");
      if (button !== null) this.search(button.dataset.word);
    });
    this.field.addEventListener("input", () => {
      const completions = words.complete(this.field.value.trim());
      document.getElementById("completions").replaceChildren(
        ...completions.map((word) => element("option", { value: words.text[word] })));
    });
    this.field.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(this.field.value.trim());
    });
  }

  /* Show the codes of a word in each tree, or no codes for "". */
  search(query) {
    const { text, counts } = this.words, word = query === "" ? null : this.words.find(query);
    this.status.replaceChildren();
    if (query !== "" && word === null) {
      this.status.append(wordElement(query), ` is not in the vocabulary of ${withSeparators(text.length)} words.`);
      return;
    }
    if (word !== null) {
      this.field.value = text[word];
      this.status.append(element("strong", {}, wordElement(text[word])),
        counts === null ? "" : `: number ${withSeparators(word + 1)} of ${withSeparators(text.length)} words `
          + `by frequency, ${plural(counts[word], "time")} in the training text.`);
    }
    for (const pane of this.panes) pane.show(word);
  }
}
