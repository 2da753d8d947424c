"use strict";
/* The tree explorer: a word to search, and one tree or two side by side. */

/* One tree: how it was made, the codes of the searched word, and the tree itself. */
class Pane {
  constructor(id, packed, words, explorer) {
    this.packed = packed;
    this.words = words;
    this.explorer = explorer;
    this.tree = null;
    this.select = document.getElementById(id);
    this.title = element("h3", {});
    this.made = element("p", { class: "caption" });
    this.codes = element("div", {});
    this.holder = element("div", {});
    this.root = element("article", { class: "pane" },
      this.title, this.made, element("div", { class: "pane-body" }, this.codes, this.holder));
    this.select.append(...packed.map(({ name }, i) => element("option", { value: i }, name)));
    this.select.addEventListener("change", () => this.choose(this.select.value));
  }

  /* A tree is unpacked when it is first chosen, and kept. */
  async choose(value) {
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
      this.view = tree.nNodes === 0 ? null
        : new TreeView(tree, `The tree ${chosen.name}`, (word) => this.explorer.show(word));
      this.holder.replaceChildren(this.view?.root ?? "One word alone: there is nothing to decide.");
    }
    this.explorer.refresh(this);
  }

  show(word) {
    const known = this.tree !== null && this.view !== null;
    const codes = known && word !== null ? this.tree.codes(word) : [];
    this.codes.replaceChildren(...(codes.length > 0 ? [codesElement(this.tree, codes)] : []));
    if (known) this.view.show(codes);
  }
}

class Explorer {
  static async start(data) {
    const explorer = new Explorer(data, await Words.unpack(data));
    await explorer.panes[0].choose(String(data.first));
    await explorer.panes[1].choose("");
  }

  constructor(data, words) {
    this.words = words;
    this.word = null;
    this.found = document.getElementById("found");
    this.agreement = element("div", { class: "both" });
    this.panes = [
      new Pane("tree-a", data.trees, words, this), new Pane("tree-b", data.trees, words, this),
    ];
    this.panes[1].select.prepend(element("option", { value: "" }, "none"));
    document.getElementById("panes").append(this.agreement, ...this.panes.map((pane) => pane.root));
    this.search = new WordSearch(words, (word) => this.show(word), (query) => this.#missed(query));
    if (data.example !== null) this.search.propose(data.example);
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
  }

  /* Show the word again, after a pane has chosen another tree. */
  refresh(pane) {
    pane.show(this.word);
    this.#compare();
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
