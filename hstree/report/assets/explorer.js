"use strict";
/* The tree explorer: a word to search, and one tree or two side by side.

   What is shown is in the address, after the #: the trees' names, the word, the enlarged nodes.
   Words reach the page as text, never as markup. */

const BRANCHES_AT_A_TIME = 50, CODES_AT_A_TIME = 4, DECISIONS_SHOWN = 60, COMPANY = 10;
/* A path is opened down to this depth. */
const DEEPEST_OPENED = 120;

// Elements

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

function chips(words, className = "chip") {
  return words.flatMap((text) => [element("span", { class: className }, wordElement(text)), " "]);
}

/* Links to the page with each word searched, which the explorer follows itself. */
function wordLinks(words) {
  return words.flatMap((text) => [
    element("a", { class: "chip", href: addressWith({ word: text }), "data-word": text }, wordElement(text)), " "]);
}

function quietButton(content, attributes, pressed) {
  const button = element("button", { type: "button", class: "quiet", ...attributes }, content);
  if (pressed) button.addEventListener("click", () => pressed(button));
  return button;
}

function grouped(value) {
  return value.toLocaleString("en");
}

function plural(n, one, many = `${one}s`) {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

function perCent(share) {
  const value = 100 * share;
  if (value >= 9.95) return `${value.toFixed(value >= 99.95 ? 0 : 1)}%`;
  if (value >= 0.0095) return `${value.toFixed(2)}%`;
  return value >= 0.00005 ? `${value.toFixed(4)}%` : "<0.0001%";
}

function shareElement(share) {
  const bar = element("span", { class: "bar", "aria-hidden": "true", style: `--share: ${share}` });
  return element("span", { class: "share" }, bar, perCent(share));
}

// The tree as a list: nested details, made when their branch is opened

class TreeView {
  #rows = new Map();  // edge -> its details, or the line of a word
  #lit = new Set();

  constructor(tree, label) {
    this.tree = tree;
    this.root = element("div", { class: "tree", role: "group", "aria-label": label });
    this.root.addEventListener("keydown", (event) => this.#pressed(event));
    this.show([]);
  }

  /* Close everything, then open the paths of these codes and highlight them. */
  show(codes) {
    this.#rows.clear();
    this.#lit = new Set(codes.flat());
    const top = this.#row(-1, 0, 0);
    this.root.replaceChildren(top);
    this.#open(top, 0, 0);
    for (const code of codes) {
      for (const [level, edge] of code.slice(0, DEEPEST_OPENED).entries()) {
        const child = this.tree.child[edge];
        if (!this.#rows.has(edge)) {  // beyond the branches that are shown
          this.#below(this.tree.edgeNode[edge]).append(this.#row(edge, child, level + 1));
        }
        if (child >= 0) this.#open(this.#rows.get(edge), child, level + 1);
      }
    }
    const end = this.#rows.get(codes[0]?.at(-1));
    /* Not scrollIntoView, which would move the page, too. */
    if (end !== undefined) this.root.scrollTop = end.offsetTop - this.root.clientHeight / 2;
  }

  #below(node) {
    return this.#rows.get(node === 0 ? -1 : this.tree.nodeEdge[node]).querySelector(".below");
  }

  #row(edge, child, level) {
    const { tree } = this, isWord = child < 0;
    const share = edge < 0 ? 1 : tree.share(edge), name = tree.name(child);
    const words = tree.textOf(child);
    const what = element("span", { class: "what" });
    if (name !== null) what.append(element("span", { class: "name" }, wordElement(name)), " ");
    what.append(element("span", { class: "words" }, ...(isWord ? wordLinks(words) : chips(words))));
    if (!isWord && tree.leaves[child] > words.length) what.append("…");
    const { words: best, lift } = tree.characteristic(child);
    const special = best.map((word) => tree.words.text[word]).filter((text) => !words.includes(text));
    if (special.length > 0) {
      what.append(element("span", { class: "lifted" }, element("small", {}, `lift ${lift.toPrecision(2)}× `),
        ...chips(special, "chip special")));
    }
    const line = element(isWord ? "div" : "summary",
      { class: `node${isWord ? " leaf" : ""}${this.#lit.has(edge) ? " lit" : ""}`, style: `--level: ${level}` },
      element("span", { class: "twisty", "aria-hidden": "true" }),
      element("span", { class: "branch" }, edge < 0 ? "root" : String(tree.branch(edge))), what,
      element("span", { class: "size" }, isWord ? "" : plural(tree.leaves[child], "leaf", "leaves")),
      shareElement(share));
    const row = isWord ? line : element("details", {}, line, element("div", { class: "below" }));
    if (!isWord) row.addEventListener("toggle", () => { if (row.open) this.#open(row, child, level); });
    this.#rows.set(edge, row);
    return row;
  }

  #open(row, node, level) {
    row.open = true;
    if (row.lastChild.childElementCount === 0) this.#more(row.lastChild, node, level + 1, 0);
  }

  /* The next branches of a node, the largest first, and a button that brings more. */
  #more(below, node, level, from) {
    const { tree } = this, order = [...tree.branches(node)], until = from + BRANCHES_AT_A_TIME;
    const rows = order.slice(from, until).filter((edge) => !this.#rows.has(edge))
      .map((edge) => this.#row(edge, tree.child[edge], level));
    below.append(...rows);
    if (until >= order.length) return;
    const left = order.length - until;
    below.append(quietButton(`show ${Math.min(left, BRANCHES_AT_A_TIME)} more of ${plural(left, "branch", "branches")}`,
      { class: "quiet more" }, (button) => {
        this.#more(below, node, level, until);
        button.remove();
      }));
  }

  /* Arrows move, open and close, as in other lists of trees. */
  #pressed(event) {
    const items = [...this.root.querySelectorAll("summary, a, .more")].filter((item) => item.checkVisibility());
    const at = items.indexOf(event.target), row = event.target.closest("details");
    const closes = event.target.matches("summary") && row.open;
    const act = {
      ArrowDown: () => items[at + 1]?.focus(),
      ArrowUp: () => items[at - 1]?.focus(),
      Home: () => items[0].focus(),
      End: () => items.at(-1).focus(),
      ArrowRight: () => { if (closes) items[at + 1]?.focus(); else row.open = true; },
      ArrowLeft: () => {
        if (closes) row.open = false;
        else (event.target.matches("summary") ? row.parentElement.closest("details") : row)?.firstChild.focus();
      },
    }[event.key];
    if (act === undefined || at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  }
}

// A picture of the tree: a row for each level, a branch as wide as its share of the text

const LEVELS = 7;
/* The narrowest branch that is drawn, and that has text in it, as shares of the picture. */
const SLIVER = 0.004, LEGIBLE = 0.02;
/* A node of more branches is drawn as its largest ones alone, so many at most. */
const WIDE = 12, LARGEST = 24;

class Icicle {
  #lit = new Set();

  /* `zoomed` is called when a reader has enlarged a node. */
  constructor(tree, zoomed) {
    this.tree = tree;
    this.path = element("p", { class: "icicle-path" });
    this.levels = element("div", { class: "levels" });
    this.root = element("div", { class: "icicle", role: "group", "aria-label": "Picture of the tree" },
      this.path, this.levels);
    this.root.addEventListener("click", (event) => {
      const to = event.target.closest("[data-node]")?.dataset.node;
      if (to === undefined) return;
      this.enlarge(Number(to));
      zoomed();
    });
    this.enlarge(0);
  }

  /* Draw a node as wide as the picture, and what is under it. */
  enlarge(node) {
    this.node = Number.isInteger(node) && node >= 0 && node < this.tree.nNodes ? node : 0;
    this.#draw();
  }

  /* Highlight the edges of these codes. */
  light(codes) {
    this.#lit = new Set(codes.flat());
    this.#draw();
  }

  #draw() {
    const { tree, node } = this, edge = tree.nodeEdge[node];
    const steps = [["root", 0], ...tree.pathTo(edge).map((e) => [String(tree.branch(e)), tree.child[e]])];
    const shown = steps.length > 12 ? [steps[0], ["…", -1], ...steps.slice(-10)] : steps;
    this.path.replaceChildren(...shown.flatMap(([text, to], i) => [
      i === 0 ? "" : " › ",
      to === node ? element("strong", {}, text) : to < 0 ? text : quietButton(text, { "data-node": to }),
    ]), ` (${perCent(tree.nodeMass[node] / tree.nodeMass[0])} of the text, ${plural(tree.leaves[node], "leaf", "leaves")})`);
    this.levels.classList.toggle("cards", tree.fanOut(node) > WIDE);
    if (tree.fanOut(node) > WIDE) return this.levels.replaceChildren(...this.#cards(node));
    let blocks = [{ edge, child: node, left: 0, width: 1 }];
    const rows = [];
    for (let level = 0; level <= LEVELS && blocks.length > 0; level++) {
      rows.push(element("div", { class: "level-row" }, ...blocks.map((block) => this.#block(block))));
      blocks = blocks.flatMap((block) => this.#under(block));
    }
    this.levels.replaceChildren(...rows);
  }

  /* The largest branches of a wide node, each with its share and its most frequent words. */
  #cards(node) {
    const { tree } = this, edges = tree.branches(node), rest = edges.length - LARGEST;
    const cards = [...edges.slice(0, LARGEST)].map((edge) => {
      const child = tree.child[edge], name = tree.telling(child), content = [shareElement(tree.shareHere(edge)),
        name === null ? "" : element("span", { class: "name" }, wordElement(name), " "), wordElement(tree.textOf(child).join(" "))];
      const shared = { class: `card${this.#lit.has(edge) ? " lit" : ""}`, title: this.#title(edge, child) };
      return child < 0 ? element("span", shared, ...content)
        : element("button", { ...shared, type: "button", "data-node": child }, ...content);
    });
    return [...cards, rest > 0 ? element("span", { class: "card" }, `and ${plural(rest, "smaller branch", "smaller branches")}`) : ""];
  }

  #title(edge, child) {
    const name = this.tree.name(child);
    return `${name === null ? "" : `${name}, `}${perCent(edge < 0 ? 1 : this.tree.share(edge))} of the text: ${this.tree.textOf(child).join(", ")}`;
  }

  /* The branches of a node, with their edges in the picture; the last may stand for many. */
  #under({ child: node, left, width }) {
    const { tree } = this, blocks = [], edges = node >= 0 ? tree.branches(node) : [];
    let at = left;
    for (const [i, edge] of edges.entries()) {
      const here = width * tree.shareHere(edge), rest = left + width - at;
      if (here >= SLIVER) blocks.push({ edge, child: tree.child[edge], left: at, width: here });
      else if (edges.length > 2) {
        if (rest >= SLIVER) blocks.push({ edge: -1, child: -1, left: at, width: rest, more: edges.length - i });
        break;
      }
      at += here;
    }
    return blocks;
  }

  #block({ edge, child, left, width, more = 0 }) {
    const { tree } = this, lit = this.#lit.has(edge) ? " lit" : "";
    const title = more > 0 ? plural(more, "narrower branch", "narrower branches") : this.#title(edge, child);
    const shared = { title, style: `left: ${100 * left}%; width: ${100 * width}%` };
    const text = more > 0 ? "…" : tree.telling(child) ?? tree.textOf(child).join(" ");
    const content = more === 0 && width < LEGIBLE ? "" : wordElement(text);
    if (child < 0) return element("span", { ...shared, class: `block end${lit}` }, content);
    return element("button", { ...shared, type: "button", class: `block${lit}`, "data-node": child,
      tabindex: width > 0.03 ? "0" : "-1" }, content);
  }
}

// The codes of a word, decision by decision, and the words nearest to it in the tree

function codesElement(tree, codes) {
  const word = ~tree.child[codes[0].at(-1)];
  const share = codes.reduce((sum, code) => sum + tree.share(code.at(-1)), 0);
  const decisions = codes.reduce((sum, code) => sum + code.length, 0);
  const card = element("div", { class: "codes" },
    element("p", { class: "summary" }, element("strong", {}, wordElement(tree.words.text[word])),
      `: ${plural(codes.length, "code")} of ${plural(decisions, "decision")}${codes.length > 1 ? " in all" : ""}; `
      + `${perCent(share)} of the text, one word in ${grouped(Math.round(1 / share))}.`),
    element("p", { class: "caption" }, "A percentage at a decision is of the text under that node, not of all text."));
  const show = (from) => {
    const until = from + CODES_AT_A_TIME;
    codes.slice(from, until).forEach((code, i) => card.append(codeElement(tree, code, from + i, codes.length)));
    if (until < codes.length) {
      card.append(quietButton(`Show more of its ${codes.length} codes`, {}, (button) => { button.remove(); show(until); }));
    }
  };
  show(0);
  return card;
}

function codeElement(tree, code, number, of) {
  const company = wordLinks(tree.company(code, COMPANY).map((word) => tree.words.text[word]));
  const shown = code.slice(0, DECISIONS_SHOWN), left = code.length - shown.length;
  const isBinary = shown.every((edge) => tree.fanOut(tree.edgeNode[edge]) === 2);
  const branches = shown.map((edge) => tree.branch(edge)).join(isBinary ? "" : "·") + (left > 0 ? "…" : "");
  return element("section", { class: "code" },
    element("p", { class: "company" }, element("span", { class: "label" }, "Beside it: "),
      ...(company.length === 0 ? ["no other word"] : company)),
    element("details", number === 0 ? { open: "" } : {},
      element("summary", {}, of === 1 ? "Its code: " : `Code ${number + 1}: `, element("code", {}, branches),
        ` (${plural(code.length, "decision")}${of === 1 ? "" : `, ${perCent(tree.share(code.at(-1)))} of the text`})`),
      element("ol", { class: "decisions" }, ...shown.map((edge) => decisionElement(tree, edge)),
        ...(left > 0 ? [element("li", { class: "rest" }, `and ${plural(left, "decision")} more`)] : []))));
}

/* One decision: the branch that is taken, and the largest of the others. */
function decisionElement(tree, edge) {
  const node = tree.edgeNode[edge], name = tree.name(node);
  const others = tree.branches(node).filter((other) => other !== edge);
  const side = (branch, kind, remark) => {
    const child = tree.child[branch], inner = tree.name(child);
    const words = tree.textOf(child);
    return element("div", { class: kind },
      element("span", { class: "verdict" }, kind),
      element("code", {}, String(tree.branch(branch))), shareElement(tree.shareHere(branch)),
      element("span", { class: "words" }, ...(inner === null ? [] : [element("span", { class: "name" }, wordElement(inner)), " "]),
        ...chips(words), tree.leavesUnder(branch) > words.length ? "…" : "", remark));
  };
  const made = element("li", {});
  if (name !== null) made.append(element("p", { class: "name" }, "at ", wordElement(name)));
  made.append(side(edge, "taken", ""));
  const remark = others.length > 1 ? ` (the largest of ${grouped(others.length)} others)` : "";
  if (others.length > 0) made.append(side(others[0], "refused", remark));
  return made;
}

/* The words that are beside a word in both trees. */
function agreementElement(a, b, word) {
  const beside = (tree) => new Set(tree.codes(word).flatMap((code) => tree.company(code, 2 * COMPANY)));
  const inB = beside(b), asked = wordElement(a.words.text[word]);
  const both = [...beside(a)].filter((near) => inB.has(near)).slice(0, COMPANY);
  const words = wordLinks(both.map((near) => a.words.text[near]));
  return element("p", { class: "agreement" },
    ...(words.length === 0 ? ["No word is beside ", asked, " in both trees."] : ["Beside ", asked, " in both trees: ", ...words]));
}

// The explorer

/* The state in the address; null where that is an anchor of the page. */
function stateOfAddress() {
  const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return "tree" in state ? state : null;
}

/* The address of this page with other values of its state. */
function addressWith(values) {
  const state = Object.entries({ ...stateOfAddress(), ...values });
  return `#${new URLSearchParams(state.filter(([, value]) => value !== null && value !== ""))}`;
}

/* One tree: how it was made, its picture, the codes of the searched word, and the list. */
class Pane {
  constructor(id, packed, words, explorer) {
    Object.assign(this, { packed, words, explorer, tree: null, view: null, picture: null });
    this.select = document.getElementById(id);
    this.title = element("h3", {});
    this.made = element("p", { class: "caption" });
    this.codes = element("div", {});
    this.drawn = element("div", {});
    this.holder = element("div", {});
    this.root = element("article", { class: "pane" },
      this.title, this.made, this.drawn, element("div", { class: "pane-body" }, this.codes, this.holder));
    this.select.append(...packed.map(({ name }, i) => element("option", { value: i }, name)));
    this.select.addEventListener("change", () => this.choose(this.select.value));
  }

  /* A tree is unpacked when it is first chosen, and kept. */
  async choose(value, node = 0) {
    this.select.value = value;
    this.root.hidden = value === "";
    this.tree = this.view = this.picture = null;
    if (value !== "") {
      const chosen = this.packed[value];
      chosen.unpacked ??= LabelTree.unpack(chosen, this.words);
      const tree = await chosen.unpacked;
      if (this.select.value !== String(value)) return;  // another was chosen meanwhile
      this.tree = tree;
      this.title.replaceChildren(wordElement(chosen.name));
      this.made.textContent = chosen.made;
      this.view = new TreeView(tree, `The tree ${chosen.name}`);
      this.picture = new Icicle(tree, () => this.explorer.remember());
      this.picture.enlarge(node);
      this.drawn.replaceChildren(this.picture.root);
      this.holder.replaceChildren(this.view.root);
    }
    this.show(this.explorer.word);
    this.explorer.remember();
  }

  get name() {
    return this.select.value === "" ? "" : this.packed[this.select.value].name;
  }

  show(word) {
    const codes = this.view !== null && word !== null ? this.tree.codes(word) : [];
    this.codes.replaceChildren(...(codes.length > 0 ? [codesElement(this.tree, codes)] : []));
    this.view?.show(codes);
    this.picture?.light(codes);
  }
}

class Explorer {
  static async start(data) {
    const explorer = new Explorer(data, await Words.unpack(data)), state = stateOfAddress();
    if (state !== null) {
      document.getElementById("explorer").open = true;
      document.getElementById("explorer").scrollIntoView();
    }
    await explorer.apply(state ?? {});
    addEventListener("hashchange", () => explorer.apply(stateOfAddress()));
  }

  constructor(data, words) {
    Object.assign(this, { words, word: null, first: data.first, isApplying: false });
    this.said = document.getElementById("said");
    this.field = document.getElementById("word");
    this.agreement = element("div", { class: "both" });
    this.panes = ["tree-a", "tree-b"].map((id) => new Pane(id, data.trees, words, this));
    this.panes[1].select.prepend(element("option", { value: "" }, "none"));
    const holder = document.getElementById("panes");
    holder.append(this.agreement, ...this.panes.map((pane) => pane.root));
    holder.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-word]");
      if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.show(words.find(link.dataset.word));
      history.pushState(null, "", addressWith({}));
    });
    this.field.addEventListener("input", () => {
      document.getElementById("completions").replaceChildren(...words.complete(this.field.value.trim())
        .map((word) => element("option", { value: words.text[word] },
          words.counts === null ? "" : plural(words.counts[word], "time"))));
    });
    this.field.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const query = this.field.value.trim(), word = words.find(query);
      if (word !== null || query === "") this.show(query === "" ? null : word);
      else this.#missed(query);
    });
    if (data.example === null) return;
    const button = document.getElementById("example");
    button.replaceChildren("Try ", wordElement(data.example));
    button.hidden = false;
    button.addEventListener("click", () => this.show(words.find(data.example)));
  }

  /* Show what an address says; a tree that there is not is the first one, or none. */
  async apply(state) {
    if (state === null) return;
    const [a, b] = this.panes;
    const wanted = [[a, state.tree, state.node, this.first], [b, state.other, state.othernode, ""]];
    this.isApplying = true;
    for (const [pane, name, node, otherwise] of wanted) {
      const number = a.packed.findIndex((tree) => tree.name === name);
      const value = String(number < 0 ? otherwise : number);
      if (pane.tree === null || pane.select.value !== value) await pane.choose(value, Number(node ?? 0));
      else pane.picture?.enlarge(Number(node ?? 0));
    }
    this.show(this.words.number.get(state.word ?? "") ?? null);
    this.isApplying = false;
  }

  /* Put what is shown into the address, and show what both trees agree on. */
  remember() {
    const [a, b] = this.panes;
    const isBoth = this.word !== null && a.tree !== null && b.tree !== null && a.tree !== b.tree;
    this.agreement.replaceChildren(...(isBoth ? [agreementElement(a.tree, b.tree, this.word)] : []));
    if (this.isApplying) return;
    history.replaceState(null, "", addressWith({
      tree: a.name, node: a.picture?.node || "", other: b.name, othernode: b.picture?.node || "",
      word: this.word === null ? "" : this.words.text[this.word],
    }));
  }

  /* Show a word; null for none. */
  show(word) {
    const { text, counts } = this.words;
    this.word = word;
    this.field.value = word === null ? "" : text[word];
    this.said.replaceChildren();
    if (word !== null) {
      this.said.append(element("strong", {}, wordElement(text[word])),
        counts === null ? "" : `: number ${grouped(word + 1)} of ${grouped(text.length)} words by frequency, `
          + `${plural(counts[word], "time")} in the training text.`);
    }
    for (const pane of this.panes) pane.show(word);
    this.remember();
  }

  #missed(query) {
    const near = this.words.complete(query, 5).flatMap((word, i) => [
      i === 0 ? " Did you mean " : ", ", quietButton(wordElement(this.words.text[word]), {}, () => this.show(word))]);
    this.said.replaceChildren(wordElement(query), ` is not one of the ${grouped(this.words.text.length)} words.`,
      ...near, near.length === 0 ? "" : "?");
  }
}
