"use strict";
/* Label trees as flat arrays. Nothing here depends on the page.

   Words are numbered by frequency; word 0 is the most frequent. Edges are numbered as in a tree
   file: node n has the edges start[n] to start[n + 1] - 1. child[e] is a node, or ~word at a leaf. */

/* Numbers of most frequent words that are kept and shown per node. */
const KEPT = 12, SHOWN = 6;

async function unpackBytes(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpackJson(base64) {
  return JSON.parse(new TextDecoder().decode(await unpackBytes(base64)));
}

/* Return integers that are stored as four planes of bytes, the lowest bytes first. */
async function unpackIntegers(base64) {
  const planes = await unpackBytes(base64), length = planes.length / 4;
  return Int32Array.from({ length }, (_, i) => planes[i] | (planes[i + length] << 8)
    | (planes[i + 2 * length] << 16) | (planes[i + 3 * length] << 24));
}

class Words {
  static async unpack(packed) {
    const counts = packed.counts === null ? null : new Float64Array((await unpackBytes(packed.counts)).buffer);
    return new Words(await unpackJson(packed.words), counts);
  }

  constructor(text, counts) {
    this.text = text;
    this.counts = counts;
    this.lowerCase = text.map((word) => word.toLowerCase());
  }

  /* Return the number of a word, or of the most frequent word that differs only in case; null if
     there is none. */
  find(query) {
    const exact = this.text.indexOf(query);
    const number = exact >= 0 ? exact : this.lowerCase.indexOf(query.toLowerCase());
    return number >= 0 ? number : null;
  }

  /* Return the numbers of the most frequent words that begin with the query. */
  complete(query, limit = 8) {
    const lowerCase = query.toLowerCase(), matches = [];
    for (let i = 0; i < this.lowerCase.length && matches.length < limit; i++) {
      if (this.lowerCase[i].startsWith(lowerCase)) matches.push(i);
    }
    return matches;
  }
}

class LabelTree {
  static async unpack(packed, words) {
    const names = packed.names === null ? null : await unpackJson(packed.names);
    const fanOut = await unpackIntegers(packed.fan_out);
    return new LabelTree(fanOut, await unpackIntegers(packed.child), names, words);
  }

  constructor(fanOut, child, names, words) {
    this.nNodes = fanOut.length;
    this.fanOut = fanOut;
    this.child = child;
    this.names = names;
    this.words = words;
    this.start = new Int32Array(this.nNodes + 1);
    fanOut.forEach((n, node) => { this.start[node + 1] = this.start[node] + n; });
    this.#sweep();
  }

  /* Compute the mass, the leaves and the most frequent words of every node.

     A child has a larger number than its parent, so a loop from the last node to the first visits
     every node after all of its descendants. The count of a word, at least 0.5, is divided equally
     among its codes. */
  #sweep() {
    const { nNodes, child, start, words } = this;
    const nCodes = new Int32Array(words.text.length);
    for (const c of child) if (c < 0) nCodes[~c]++;

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
          this.mass[edge] = (words.counts === null ? 1 : Math.max(words.counts[~c], 0.5)) / nCodes[~c];
          this.#keep(node, ~c);
        } else {
          this.nodeEdge[c] = edge;
          this.mass[edge] = this.nodeMass[c];
          for (let i = c * KEPT; i < (c + 1) * KEPT && this.#keep(node, this.kept[i]);) i++;
        }
        this.nodeMass[node] += this.mass[edge];
        this.leaves[node] += c < 0 ? 1 : this.leaves[c];
      }
    }
  }

  /* Insert a word among those kept for a node, sorted by frequency. Return false if the word, and so
     every less frequent word, is too rare to be kept. */
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

  /* Return the fraction of the training tokens under an edge. */
  share(edge) {
    return this.mass[edge] / this.nodeMass[0];
  }

  /* Return the position of an edge among the branches of its node. */
  branch(edge) {
    return edge - this.start[this.edgeNode[edge]];
  }

  /* Return the edges of a node: two in their order, as bits 0 and 1; more by mass, the largest first. */
  branches(node) {
    const edges = Int32Array.from({ length: this.fanOut[node] }, (_, i) => this.start[node] + i);
    return edges.length <= 2 ? edges : edges.sort((a, b) => this.mass[b] - this.mass[a] || a - b);
  }

  /* Return the codes of a word: arrays of edges from the root to a leaf. */
  codes(word) {
    const codes = [];
    for (let edge = this.child.indexOf(~word); edge >= 0; edge = this.child.indexOf(~word, edge + 1)) {
      const path = [];
      for (let e = edge; e >= 0; e = this.nodeEdge[this.edgeNode[e]]) path.push(e);
      codes.push(path.reverse());
    }
    return codes;
  }

  /* Return the most frequent words under a child: a node, or a word as ~word. */
  frequentWords(child, limit = SHOWN) {
    if (child < 0) return [~child];
    const kept = this.kept.subarray(child * KEPT, child * KEPT + limit);
    return [...kept].filter((word) => word < this.words.text.length);
  }

  /* Return the words that share the most decisions with a code, the nearest first. */
  neighbours(code, limit) {
    const word = ~this.child[code.at(-1)], nearest = new Set();
    for (const edge of code.toReversed()) {
      for (const other of this.frequentWords(this.edgeNode[edge], limit + 1)) nearest.add(other);
      if (nearest.size > limit) break;
    }
    nearest.delete(word);
    return [...nearest].slice(0, limit);
  }
}
