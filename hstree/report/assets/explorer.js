"use strict";
/* The tree explorer: a word to search, and one tree or two side by side.

   What is shown is in the address, after the #: the trees' names, the word, the enlarged nodes. */

/* The state in the address; null where that is a place on the page. */
function stateOfAddress() {
  const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return "tree" in state ? state : null;
}

/* The address of this page with other values of its state. */
function addressWith(values) {
  const state = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...stateOfAddress(), ...values })) {
    if (value !== null && value !== "") state.set(name, value);
  }
  return `#${state}`;
}

/* One tree: how it was made, the codes of the searched word, and the tree itself. */
class Pane {
  constructor(id, packed, words, explorer) {
    this.id = id;
    this.packed = packed;
    this.words = words;
    this.explorer = explorer;
    this.tree = null;
    this.select = document.getElementById(id);
    this.title = element("h3", {});
    this.made = element("p", { class: "caption" });
    this.codes = element("div", {});
    this.drawn = element("div", {});
    this.holder = element("div", {});
    this.root = element("article", { class: "pane" },
      this.title, this.made, this.drawn, element("div", { class: "pane-body" }, this.codes, this.holder));
    this.select.append(...packed.map(({ name }, i) => element("option", { value: i }, name)));
    this.select.addEventListener("change", () => explorer.choose(this, this.select.value));
  }

  /* A tree is unpacked when it is first chosen, and kept. */
  async choose(value, node = 0) {
    this.select.value = value;
    this.root.hidden = value === "";
    if (value === "") {
      this.tree = null;
    } else {
      const chosen = this.packed[value];
      chosen.unpacked ??= LabelTree.unpack(chosen, this.words);
      const tree = await chosen.unpacked;
      if (this.select.value !== String(value)) return;  // another was chosen meanwhile
      this.tree = tree;
      this.title.replaceChildren(wordElement(chosen.name));
      this.made.textContent = chosen.made;
      this.view = this.picture = null;
      this.drawn.replaceChildren();
      if (tree.nNodes === 0) this.holder.replaceChildren("One word alone: there is nothing to decide.");
      else {
        this.view = new TreeView(tree, `The tree ${chosen.name}`, (word) => this.explorer.show(word));
        this.picture = new Icicle(tree, () => this.explorer.remember());
        this.picture.enlarge(node);
        this.drawn.replaceChildren(this.picture.root);
        this.holder.replaceChildren(this.view.root);
      }
    }
    this.explorer.refresh(this);
  }

  get name() {
    return this.select.value === "" ? "" : this.packed[this.select.value].name;
  }

  /* The number of the enlarged node; "" for the root, or without a tree. */
  get node() {
    return this.tree === null || !this.picture?.node ? "" : String(this.picture.node);
  }

  show(word) {
    const known = this.tree !== null && this.view !== null;
    const codes = known && word !== null ? this.tree.codes(word) : [];
    this.codes.replaceChildren(...(codes.length > 0 ? [codesElement(this.tree, codes)] : []));
    if (!known) return;
    this.view.show(codes);
    this.picture.light(codes);
  }
}

class Explorer {
  static async start(data) {
    const explorer = new Explorer(data, await Words.unpack(data));
    const state = stateOfAddress();
    await explorer.apply(state ?? {});
    if (state !== null) document.getElementById("explorer").scrollIntoView();
    addEventListener("hashchange", () => explorer.apply(stateOfAddress()));
  }

  constructor(data, words) {
    this.words = words;
    this.word = null;
    this.first = data.first;
    this.isApplying = false;
    this.found = document.getElementById("found");
    this.agreement = element("div", { class: "both" });
    this.panes = [
      new Pane("tree-a", data.trees, words, this), new Pane("tree-b", data.trees, words, this),
    ];
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
    this.search = new WordSearch(words, (word) => this.show(word), (query) => this.#missed(query));
    if (data.example !== null) this.search.propose(data.example);
  }

  /* Show what an address says; a tree that there is not is the first one, or none. */
  async apply(state) {
    if (state === null) return;
    const [a, b] = this.panes;
    const number = (name) => a.packed.findIndex((tree) => tree.name === name);
    const wanted = [[a, state.tree, state.node, this.first], [b, state.other, state.othernode, ""]];
    this.isApplying = true;
    for (const [pane, name, node, otherwise] of wanted) {
      const value = number(name) < 0 ? otherwise : number(name);
      if (pane.tree === null || pane.select.value !== String(value)) await pane.choose(String(value), Number(node ?? 0));
      else pane.picture?.enlarge(Number(node ?? 0));
    }
    const word = this.words.number.get(state.word ?? "") ?? null;
    if (word !== this.word) this.show(word);
    this.isApplying = false;
  }

  /* Choose a tree for a pane; the other one stays where it is, though its rows get less room. */
  async choose(pane, value) {
    const other = this.panes.find((one) => one !== pane);
    if (other.tree === null || other.view === null) await pane.choose(value);
    else await other.view.keepingPlace(() => pane.choose(value));
  }

  /* Put what is shown into the address. */
  remember() {
    if (this.isApplying) return;
    const [a, b] = this.panes;
    const word = this.word === null ? "" : this.words.text[this.word];
    history.replaceState(null, "", addressWith(
      { tree: a.name, node: a.node, other: b.name, othernode: b.node, word }));
  }

  /* Show a word; null for none. */
  show(word) {
    const { text, counts } = this.words;
    this.word = word;
    this.search.set(word === null ? "" : text[word]);
    this.found.replaceChildren();
    if (word !== null) {
      this.found.append(element("strong", {}, wordElement(text[word])));
      if (counts !== null) {
        this.found.append(`: number ${grouped(word + 1)} of ${grouped(text.length)} words by frequency, `
          + `${plural(counts[word], "time", "times")} in the training text.`);
      }
    }
    for (const pane of this.panes) pane.show(word);
    this.#compare();
    this.remember();
  }

  /* Show the word again, after a pane has chosen another tree. */
  refresh(pane) {
    pane.show(this.word);
    this.#compare();
    this.remember();
  }

  #compare() {
    const [a, b] = this.panes.map((pane) => pane.tree);
    const both = this.word !== null && a !== null && b !== null && a !== b;
    this.agreement.replaceChildren(...(both ? [agreementElement(a, b, this.word)] : []));
  }

  #missed(query) {
    const near = this.words.complete(query, 5).map((word) => {
      const button = element("button", { type: "button", class: "quiet" }, wordElement(this.words.text[word]));
      button.addEventListener("click", () => this.show(word));
      return button;
    });
    const size = grouped(this.words.text.length);
    this.found.replaceChildren(wordElement(query), ` is not one of the ${size} words.`,
      ...(near.length === 0 ? [] : [" Did you mean ", ...listed(near), "?"]));
  }
}

/* The field with its completions: an editable combobox with a list. */
class WordSearch {
  #active = -1;
  #offered = [];

  constructor(words, choose, missed) {
    this.words = words;
    this.choose = choose;
    this.missed = missed;
    this.field = document.getElementById("word");
    this.list = document.getElementById("completions");
    this.field.addEventListener("input", () => this.#offer());
    this.field.addEventListener("keydown", (event) => this.#pressed(event));
    this.field.addEventListener("blur", () => this.#close());
    /* A press must not take the focus away before the click arrives. */
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this.#picked(event));
    this.field.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  set(text) {
    this.field.value = text;
    this.#close();
  }

  /* Propose a word to start with. */
  propose(text) {
    const button = document.getElementById("example");
    button.replaceChildren("Try ", wordElement(text));
    button.hidden = false;
    button.addEventListener("click", () => this.choose(this.words.find(text)));
  }

  #offer() {
    this.#offered = this.words.complete(this.field.value.trim());
    this.list.replaceChildren(...this.#offered.map((word, i) =>
      element("li", { role: "option", id: `completion-${i}`, "aria-selected": "false" },
        wordElement(this.words.text[word]),
        this.words.counts === null ? "" : element("small", {}, grouped(this.words.counts[word])))));
    this.list.hidden = this.#offered.length === 0;
    this.field.setAttribute("aria-expanded", String(!this.list.hidden));
    this.#activate(-1);
  }

  #activate(position) {
    this.#active = position;
    [...this.list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === position)));
    if (position < 0) this.field.removeAttribute("aria-activedescendant");
    else this.field.setAttribute("aria-activedescendant", `completion-${position}`);
  }

  #close() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.#activate(-1);
  }

  #pressed(event) {
    const last = this.#offered.length - 1;
    if (event.key === "Escape") this.#close();
    else if (event.key === "ArrowDown" && this.list.hidden) this.#offer();
    else if (event.key === "ArrowDown") this.#activate(this.#active === last ? -1 : this.#active + 1);
    else if (event.key === "ArrowUp") this.#activate(this.#active < 0 ? last : this.#active - 1);
    else return;
    event.preventDefault();
  }

  #picked(event) {
    const option = event.target.closest("[role=option]");
    if (option !== null) this.choose(this.#offered[[...this.list.children].indexOf(option)]);
  }

  #submit() {
    const query = this.field.value.trim();
    const word = query === "" ? null : this.#active < 0 ? this.words.find(query) : this.#offered[this.#active];
    this.#close();
    if (word !== null || query === "") this.choose(word);
    else this.missed(query);
  }
}
