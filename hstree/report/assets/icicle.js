"use strict";
/* A picture of a tree: a row for each level, a branch as wide as its share of the text.

   What is narrower than a sliver is drawn together. It is made of buttons, so that their text is cut
   where they end; everything in it is in the list below it, too, which is better with a keyboard. */

const LEVELS = 7;
/* The narrowest branch that is drawn, as a share of the picture. */
const SLIVER = 0.004;
/* The narrowest branch that has text in it. */
const LEGIBLE = 0.02;

class Icicle {
  #lit = new Set();

  /* `zoomed` is called with the number of a node that was enlarged. */
  constructor(tree, zoomed) {
    this.tree = tree;
    this.zoomed = zoomed;
    this.node = 0;
    this.path = element("p", { class: "icicle-path" });
    this.levels = element("div", { class: "levels" });
    this.root = element("div", { class: "icicle", role: "group", "aria-label": "Picture of the tree" },
      this.path, this.levels);
    this.root.addEventListener("click", (event) => {
      const to = event.target.closest("[data-node]")?.dataset.node;
      if (to !== undefined) this.enlarge(Number(to), true);
    });
    this.enlarge(0);
  }

  /* Draw a node as wide as the picture, and what is under it. */
  enlarge(node, byReader = false) {
    this.node = Number.isInteger(node) && node >= 0 && node < this.tree.nNodes ? node : 0;
    this.#draw();
    if (byReader) this.zoomed(this.node);
  }

  /* Highlight the edges of these codes. */
  light(codes) {
    this.#lit = new Set(codes.flat());
    this.#draw();
  }

  #draw() {
    const { tree, node } = this;
    const edge = tree.nodeEdge[node];
    const above = edge < 0 ? [] : tree.pathTo(edge);
    const steps = [["root", 0], ...above.map((e) => [String(tree.branch(e)), tree.child[e]])];
    const shown = steps.length > 12 ? [steps[0], null, ...steps.slice(-10)] : steps;
    this.path.replaceChildren(...shown.flatMap((step, i) => [
      ...(i === 0 ? [] : [" › "]),
      step === null ? "…" : step[1] === node ? element("strong", {}, step[0])
        : element("button", { type: "button", class: "quiet", "data-node": step[1] }, step[0]),
    ]), ` (${perCent(tree.nodeMass[node] / tree.nodeMass[0])} of the text, `
      + `${plural(tree.leaves[node], "leaf", "leaves")})`);
    const rows = [[this.#block({ edge, node, left: 0, width: 1 })]];
    let parents = [{ node, left: 0, width: 1 }];
    for (let level = 1; level <= LEVELS && parents.length > 0; level++) {
      const blocks = parents.flatMap((parent) => this.#under(parent));
      if (blocks.length > 0) rows.push(blocks.map((block) => this.#block(block)));
      parents = blocks.filter((block) => block.node !== null);
    }
    this.levels.replaceChildren(...rows.map((blocks) => element("div", { class: "level-row" }, ...blocks)));
  }

  /* The branches of a node, with their places in the picture; the last may stand for many. */
  #under({ node, left, width }) {
    const { tree } = this, blocks = [];
    const edges = tree.branches(node);
    let at = left;
    for (let i = 0; i < edges.length; i++) {
      const edge = edges[i], child = tree.child[edge];
      const own = width * tree.shareHere(edge);
      if (own >= SLIVER) blocks.push({ edge, node: child < 0 ? null : child, left: at, width: own });
      else if (edges.length > 2) {
        if (left + width - at >= SLIVER) {
          blocks.push({ edge: -1, node: null, left: at, width: left + width - at, more: edges.length - i });
        }
        break;
      }
      at += own;
    }
    return blocks;
  }

  #block({ edge, node, left, width, more = 0 }) {
    const { tree } = this;
    const words = more > 0 ? [] : edge < 0 ? tree.wordsOf(0) : tree.wordsUnder(edge);
    const texts = words.map((word) => tree.words.text[word]);
    const name = node === null ? null : tree.name(node);
    const share = edge < 0 ? 1 : tree.share(edge);
    const title = more > 0 ? plural(more, "narrower branch", "narrower branches")
      : `${name === null ? "" : `${name}, `}${perCent(share)} of the text: ${texts.join(", ")}`;
    const attributes = { title, style: `left: ${100 * left}%; width: ${100 * width}%` };
    const lit = edge >= 0 && this.#lit.has(edge) ? " lit" : "";
    const content = more > 0 ? "…" : width < LEGIBLE ? "" : wordElement(name ?? texts.join(" "));
    if (node === null) return element("span", { ...attributes, class: `block end${lit}` }, content);
    return element("button", { ...attributes, type: "button", class: `block${lit}`, "data-node": node,
      tabindex: width > 0.03 ? "0" : "-1" }, content);
  }
}
