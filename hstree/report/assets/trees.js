"use strict";
/* Trees as flat arrays, independent of the page.

   Words are numbered by frequency, 0 the most frequent. Edges are numbered as in a tree file:
   those of node n are start[n] to start[n + 1] - 1, and child[e] is a node, or ~word. */

/* Number of most frequent words that are kept for every node, and that a row shows. */
const KEPT = 24, SHOWN = 6;

async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpackedJson(base64) {
  return JSON.parse(new TextDecoder().decode(await inflated(base64)));
}

/* Integers from four planes of their bytes. */
async function unpackedIntegers(base64) {
  const planes = await inflated(base64), length = planes.length / 4;
  return Int32Array.from({ length }, (_, i) => planes[i] | (planes[i + length] << 8)
    | (planes[i + 2 * length] << 16) | (planes[i + 3 * length] << 24));
}

class Words {
  static async unpack(packed) {
    const counts = packed.counts === null ? null : new Float64Array((await inflated(packed.counts)).buffer);
    return new Words(await unpackedJson(packed.words), counts);
  }

  constructor(text, counts) {
    this.text = text;
    this.counts = counts;
    this.folded = text.map((word) => word.toLowerCase());
    this.number = new Map(text.map((word, i) => [word, i]));
  }

  /* The word as typed, or else the most frequent one that differs only in case. */
  find(query) {
    const folded = () => this.folded.indexOf(query.toLowerCase());
    const number = this.number.get(query) ?? folded();
    return number < 0 ? null : number;
  }

  /* Words that begin with the query, then words that contain it, then words at most two edits away. */
  complete(query, limit = 8) {
    const folded = query.toLowerCase(), exact = this.find(query);
    if (folded === "") return [];
    const begins = exact === null ? [] : [exact], holds = [];
    for (let i = 0; i < this.folded.length && begins.length <= limit; i++) {
      const position = this.folded[i].indexOf(folded);
      if (position === 0) begins.push(i);
      else if (position > 0 && holds.length < limit) holds.push(i);
    }
    const matches = [...new Set([...begins, ...holds])].slice(0, limit);
    return matches.length > 0 ? matches : this.#near(folded, limit);
  }

  #near(folded, limit) {
    const most = folded.length < 5 ? 1 : 2, near = [];
    this.folded.forEach((word, i) => {
      if (Math.abs(word.length - folded.length) > most) return;
      const slips = editDistance(word, folded);
      if (slips <= most) near.push([slips, i]);
    });
    return near.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, limit).map(([, i]) => i);
  }
}

/* Number of letters deleted, inserted, changed or swapped with their neighbour. */
function editDistance(a, b) {
  let before = [], above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] !== b[j - 1]));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, above] = [above, row];
  }
  return above[b.length];
}

class LabelTree {
  static async unpack(packed, words) {
    const names = packed.names === null ? null : await unpackedJson(packed.names);
    const fanOut = await unpackedIntegers(packed.fan_out);
    return new LabelTree(fanOut, await unpackedIntegers(packed.child), names, words);
  }

  constructor(fanOut, child, names, words) {
    this.nNodes = fanOut.length;
    this.child = child;
    this.names = names;
    this.words = words;
    this.start = new Int32Array(this.nNodes + 1);
    fanOut.forEach((n, node) => { this.start[node + 1] = this.start[node] + n; });
    this.#sweep();
  }

  /* A child has a larger number than its parent, so one pass from the last node up sees every
     node after all that is under it. A word's count, at least 0.5, is split over its codes. */
  #sweep() {
    const { nNodes, child, start, words } = this;
    const codes = new Int32Array(words.text.length);
    for (const c of child) if (c < 0) codes[~c]++;
    this.codesOf = codes;
    this.hasSenses = codes.some((n) => n > 1);
    this.mass = new Float64Array(child.length);
    this.edgeNode = new Int32Array(child.length);
    this.nodeEdge = new Int32Array(nNodes).fill(-1);
    this.nodeMass = new Float64Array(nNodes);
    this.leaves = new Int32Array(nNodes);
    this.kept = new Int32Array(nNodes * KEPT).fill(words.text.length);
    for (let node = nNodes - 1; node >= 0; node--) {
      for (let edge = start[node]; edge < start[node + 1]; edge++) {
        const c = child[edge];
        this.edgeNode[edge] = node;
        if (c < 0) {
          this.mass[edge] = (words.counts === null ? 1 : Math.max(words.counts[~c], 0.5)) / codes[~c];
          this.#keep(node, ~c);
        } else {
          this.nodeEdge[c] = edge;
          this.mass[edge] = this.nodeMass[c];
          for (let i = c * KEPT; i < (c + 1) * KEPT && this.#keep(node, this.kept[i]);) i++;
        }
        this.nodeMass[node] += this.mass[edge];
        this.leaves[node] += this.leavesUnder(edge);
      }
    }
  }

  /* Insert a word among those kept for a node, by frequency; false when it and all less frequent
     words come too late. */
  #keep(node, word) {
    const first = node * KEPT, { kept } = this;
    let position = first + KEPT - 1;
    if (word >= kept[position]) return false;
    while (position > first && kept[position - 1] > word) position--;
    if (position > first && kept[position - 1] === word) return true;
    kept.copyWithin(position + 1, position, first + KEPT - 1);
    kept[position] = word;
    return true;
  }

  fanOut(node) {
    return this.start[node + 1] - this.start[node];
  }

  /* Share of all text under an edge, and share of its node's text. */
  share(edge) {
    return this.mass[edge] / this.nodeMass[0];
  }

  shareHere(edge) {
    return this.mass[edge] / this.nodeMass[this.edgeNode[edge]];
  }

  branch(edge) {
    return edge - this.start[this.edgeNode[edge]];
  }

  /* The name of a node, if it has one; a word has none. */
  name(node) {
    return node < 0 ? null : this.names?.[node] ?? null;
  }

  leavesUnder(edge) {
    const c = this.child[edge];
    return c < 0 ? 1 : this.leaves[c];
  }

  /* Two branches in their order, the bits 0 and 1; more than two by share, the largest first. */
  branches(node) {
    const edges = Int32Array.from({ length: this.fanOut(node) }, (_, i) => this.start[node] + i);
    return edges.length <= 2 ? edges : edges.sort((a, b) => this.mass[b] - this.mass[a] || a - b);
  }

  /* The codes of a word: arrays of edges, from the root down, in the order of their last edges. */
  codes(word) {
    const codes = [];
    for (let edge = this.child.indexOf(~word); edge >= 0; edge = this.child.indexOf(~word, edge + 1)) {
      codes.push(this.pathTo(edge));
    }
    return codes;
  }

  pathTo(edge) {
    const path = [];
    for (let e = edge; e >= 0; e = this.nodeEdge[this.edgeNode[e]]) path.push(e);
    return path.reverse();
  }

  /* The most frequent words of a node, or of what an edge leads to: a node or a word, ~c. */
  wordsOf(c, limit = SHOWN) {
    if (c < 0) return [~c];
    return [...this.kept.subarray(c * KEPT, c * KEPT + limit)].filter((word) => word < this.words.text.length);
  }

  /* The texts of these words. */
  textOf(c) {
    return this.wordsOf(c).map((word) => this.words.text[word]);
  }

  /* A node's name where it says more than its number, as "class 7" does not. */
  telling(c) {
    const name = this.name(c);
    return name !== null && !/^(class|cluster) \d+$/.test(name) ? name : null;
  }

  /* Words under a node with the highest lift, P(word | node) / P(word), and the lift of the first.

     Where every word has one code, the lift is the same for all words under a node, and nothing is
     characteristic but what is frequent. */
  characteristic(node) {
    if (!this.hasSenses || node <= 0) return { words: [], lift: 1 };
    const here = new Map(), open = [node];
    while (open.length > 0) {
      const n = open.pop();
      for (const c of this.child.subarray(this.start[n], this.start[n + 1])) {
        if (c < 0) here.set(~c, (here.get(~c) ?? 0) + 1);
        else open.push(c);
      }
    }
    const part = (word) => here.get(word) / this.codesOf[word];
    const words = [...here.keys()].sort((a, b) => part(b) - part(a) || a - b).slice(0, SHOWN);
    return { words, lift: part(words[0]) * this.nodeMass[0] / this.nodeMass[node] };
  }

  /* The words that share most decisions with a code, nearest first; fewer than are kept. */
  company(code, limit) {
    const word = ~this.child[code.at(-1)], near = new Set();
    for (const edge of code.toReversed()) {
      for (const one of this.wordsOf(this.edgeNode[edge], limit + 1)) if (one !== word) near.add(one);
      if (near.size >= limit) break;
    }
    return [...near].slice(0, limit);
  }
}
