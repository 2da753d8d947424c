"use strict";
/* One tree as a flat list of rows, each with its level.

   Rows are made when their branch is opened, so that a tree of 100,000 labels costs no more than
   the rows that are shown. Words reach the page as text, never as markup. */

const BRANCHES_AT_A_TIME = 50;
/* A path is opened down to this depth. */
const DEEPEST_OPENED = 120;

function element(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

/* A word of any script, isolated so that it does not turn its neighbours around. */
function wordElement(text) {
  return element("bdi", {}, text);
}

/* Words as chips. */
function chips(words, className = "chip") {
  return words.flatMap((text) => [element("span", { class: className }, wordElement(text)), " "]);
}

/* A link to the page with this word searched, which the explorer follows itself. */
function wordLink(text) {
  return element("a", { class: "chip", href: addressWith({ word: text }), "data-word": text }, wordElement(text));
}

function listed(elements) {
  return elements.flatMap((one, i) => (i === 0 ? [one] : [", ", one]));
}

function grouped(value) {
  return value.toLocaleString("en");
}

function plural(n, one, many) {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

function perCent(share) {
  const value = 100 * share;
  if (value >= 9.95) return `${value.toFixed(value >= 99.95 ? 0 : 1)}%`;
  if (value >= 0.0095) return `${value.toFixed(2)}%`;
  return value >= 0.00005 ? `${value.toFixed(4)}%` : "<0.0001%";
}

function shareBar(share) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", share);
  return bar;
}

class TreeView {
  #items = new Map();     // row -> {edge, node, level, more}
  #rowOfEdge = new Map();
  #pinned = new Map();    // node -> edges on a lit path, always shown
  #lit = new Set();

  /* `choose` is called with the number of a word that was picked in the tree. */
  constructor(tree, label, choose) {
    this.tree = tree;
    this.choose = choose;
    this.root = element("div", { class: "tree", role: "tree", "aria-label": label });
    this.root.addEventListener("click", (event) => this.#clicked(event));
    this.root.addEventListener("keydown", (event) => this.#pressed(event));
    this.show([]);
  }

  /* Close everything, then open the paths of these codes and highlight them. */
  show(codes) {
    this.#items.clear();
    this.#rowOfEdge.clear();
    this.#pinned.clear();
    this.#lit = new Set(codes.flat());
    for (const edge of this.#lit) {
      const node = this.tree.edgeNode[edge];
      this.#pinned.set(node, [...(this.#pinned.get(node) ?? []), edge]);
    }
    const top = this.#rootRow();
    this.root.replaceChildren(top);
    this.#open(top);
    for (const code of codes) {
      for (const edge of code.slice(0, Math.min(code.length - 1, DEEPEST_OPENED))) {
        const row = this.#rowOfEdge.get(edge);
        if (row !== undefined) this.#open(row);
      }
    }
    const end = codes.length === 0 ? undefined : this.#rowOfEdge.get(codes[0].at(-1));
    this.#makeCurrent(end ?? top);
    /* Not scrollIntoView, which would move the page, too. */
    if (end !== undefined) this.root.scrollTop = end.offsetTop - this.root.clientHeight / 2;
  }

  /* Do what may change the width of the rows, and leave the first one in view where it is. */
  async keepingPlace(change) {
    const top = [...this.root.children].find((row) => row.offsetTop + row.offsetHeight > this.root.scrollTop);
    const above = top === undefined ? 0 : top.offsetTop - this.root.scrollTop;
    await change();
    if (top?.isConnected) this.root.scrollTop = top.offsetTop - above;
  }

  #rootRow() {
    const { tree } = this;
    const words = tree.wordsOf(0).map((word) => tree.words.text[word]);
    return this.#row({ edge: -1, node: 0, level: 1, more: null }, {
      position: 1, of: 1, branch: "root", name: tree.name(0), words, leaves: tree.leaves[0], share: 1,
    });
  }

  #branchRow(edge, level, position, of) {
    const { tree } = this;
    const child = tree.child[edge];
    const row = this.#row({ edge, node: child < 0 ? null : child, level, more: null }, {
      position, of,
      branch: String(tree.branch(edge)),
      name: child < 0 ? null : tree.name(child),
      words: tree.wordsUnder(edge).map((word) => tree.words.text[word]),
      leaves: tree.leavesUnder(edge),
      share: tree.share(edge),
    });
    this.#rowOfEdge.set(edge, row);
    if (this.#lit.has(edge)) row.classList.add("lit");
    return row;
  }

  #row(item, shown) {
    const leaf = item.node === null;
    const more = shown.leaves > shown.words.length ? ["…"] : [];
    const lifted = leaf ? { words: [] } : this.tree.characteristic(item.node);
    const special = lifted.words.map((word) => this.tree.words.text[word])
      .filter((text) => !shown.words.includes(text));
    const what = element("span", { class: "what" });
    if (shown.name !== null) what.append(element("span", { class: "name" }, wordElement(shown.name)), " ");
    what.append(element("span", { class: "words" }, ...chips(shown.words), ...more));
    if (special.length > 0) {
      what.append(element("span", { class: "lifted" }, element("small", {}, `lift ${lifted.lift.toPrecision(2)}× `),
        ...chips(special, "chip special")));
    }
    const size = leaf ? "a word" : plural(shown.leaves, "leaf", "leaves");
    const row = element(
      "div",
      {
        role: "treeitem",
        tabindex: "-1",
        "aria-level": item.level,
        "aria-posinset": shown.position,
        "aria-setsize": shown.of,
        "aria-label": `${item.edge < 0 ? "root" : `branch ${shown.branch}`}, `
          + `${shown.name === null ? "" : `${shown.name}, `}${perCent(shown.share)} of the text, `
          + `${size}: ${shown.words.join(", ")}`,
        class: leaf ? "leaf" : "inner",
      },
      element("span", { class: "twisty", "aria-hidden": "true" }),
      element("span", { class: "branch" }, shown.branch),
      what,
      element("span", { class: "size" }, leaf ? "" : size),
      element("span", { class: "share" }, shareBar(shown.share), perCent(shown.share)),
    );
    row.style.setProperty("--level", item.level - 1);
    if (!leaf) row.setAttribute("aria-expanded", "false");
    this.#items.set(row, item);
    return row;
  }

  #moreRow(node, level, from, left) {
    const text = `show ${grouped(Math.min(left, BRANCHES_AT_A_TIME))} more of ${plural(left, "branch", "branches")}`;
    const row = element(
      "div",
      { role: "treeitem", tabindex: "-1", "aria-level": level, class: "more" },
      element("span", { class: "twisty", "aria-hidden": "true" }),
      element("span", { class: "what" }, text),
    );
    row.style.setProperty("--level", level - 1);
    this.#items.set(row, { edge: -1, node, level, more: from });
    return row;
  }

  #open(row) {
    const { node, level } = this.#items.get(row);
    if (row.getAttribute("aria-expanded") !== "false") return;
    row.setAttribute("aria-expanded", "true");
    row.after(...this.#rowsBelow(node, level + 1, 0));
  }

  /* The next rows of a node's branches, the row that brings more, and those that are pinned. */
  #rowsBelow(node, level, from) {
    const order = this.tree.branches(node);
    const rows = [], until = Math.min(from + BRANCHES_AT_A_TIME, order.length);
    for (let i = from; i < until; i++) {
      if (!this.#rowOfEdge.has(order[i])) rows.push(this.#branchRow(order[i], level, i + 1, order.length));
    }
    if (until < order.length) rows.push(this.#moreRow(node, level, until, order.length - until));
    for (const edge of this.#pinned.get(node) ?? []) {
      const position = order.indexOf(edge);
      if (position >= until && !this.#rowOfEdge.has(edge)) {
        rows.push(this.#branchRow(edge, level, position + 1, order.length));
      }
    }
    return rows;
  }

  #showMore(row) {
    const { node, level, more } = this.#items.get(row);
    const rows = this.#rowsBelow(node, level, more);
    row.before(...rows);
    this.#makeCurrent(rows[0] ?? row.previousElementSibling, true);
    this.#forget(row);
  }

  #close(row) {
    const { level } = this.#items.get(row);
    row.setAttribute("aria-expanded", "false");
    for (let next = row.nextElementSibling; next !== null && this.#items.get(next).level > level;) {
      const below = next;
      next = next.nextElementSibling;
      this.#forget(below);
    }
    if (this.root.querySelector("[tabindex='0']") === null) this.#makeCurrent(row);
  }

  #forget(row) {
    this.#rowOfEdge.delete(this.#items.get(row).edge);
    this.#items.delete(row);
    row.remove();
  }

  /* One row at a time can be reached by Tab; the arrows go on from there. */
  #makeCurrent(row, focus = false) {
    for (const other of this.root.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    row.tabIndex = 0;
    if (focus) row.focus();
  }

  #use(row) {
    const item = this.#items.get(row);
    if (item.more !== null) this.#showMore(row);
    else if (item.node === null) this.choose(~this.tree.child[item.edge]);
    else if (row.getAttribute("aria-expanded") === "true") this.#close(row);
    else this.#open(row);
  }

  #clicked(event) {
    const row = event.target.closest("[role=treeitem]");
    if (row === null) return;
    this.#makeCurrent(row, true);
    this.#use(row);
  }

  #pressed(event) {
    const row = event.target.closest("[role=treeitem]");
    if (row === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const act = {
      ArrowDown: () => this.#move(row.nextElementSibling),
      ArrowUp: () => this.#move(row.previousElementSibling),
      Home: () => this.#move(this.root.firstElementChild),
      End: () => this.#move(this.root.lastElementChild),
      ArrowRight: () => this.#inwards(row),
      ArrowLeft: () => this.#outwards(row),
      Enter: () => this.#use(row),
      " ": () => this.#use(row),
    }[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  }

  #move(row) {
    if (row !== null) this.#makeCurrent(row, true);
  }

  #inwards(row) {
    const expanded = row.getAttribute("aria-expanded");
    if (expanded === "false") this.#open(row);
    else if (expanded === "true") this.#move(row.nextElementSibling);
  }

  #outwards(row) {
    if (row.getAttribute("aria-expanded") === "true") {
      this.#close(row);
      return;
    }
    const { level } = this.#items.get(row);
    let above = row.previousElementSibling;
    while (above !== null && this.#items.get(above).level >= level) above = above.previousElementSibling;
    this.#move(above);
  }
}
