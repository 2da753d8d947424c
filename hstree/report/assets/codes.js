"use strict";
/* The codes of a word, decision by decision, and the words nearest to it in the tree. */

const CODES_AT_A_TIME = 4;
const DECISIONS_SHOWN = 60;
const COMPANY = 10;

/* A card for the word at the end of these codes. */
function codesElement(tree, codes) {
  const word = ~tree.child[codes[0].at(-1)];
  const share = codes.reduce((sum, code) => sum + tree.share(code.at(-1)), 0);
  const decisions = codes.reduce((sum, code) => sum + code.length, 0);
  const card = element("div", { class: "codes" },
    element("p", { class: "summary" },
      element("strong", {}, wordElement(tree.words.text[word])),
      `: ${plural(codes.length, "code", "codes")} of `
      + `${plural(decisions, "decision", "decisions")}${codes.length > 1 ? " in all" : ""}; `
      + `${perCent(share)} of the text, one word in ${grouped(Math.round(1 / share))}.`),
    element("p", { class: "caption" },
      "A percentage at a decision is of the text under that node, not of all text."));
  showCodes(card, tree, codes, 0);
  return card;
}

function showCodes(card, tree, codes, from) {
  const until = Math.min(from + CODES_AT_A_TIME, codes.length);
  for (let i = from; i < until; i++) card.append(codeElement(tree, codes[i], i, codes.length));
  if (until === codes.length) return;
  const more = element("button", { type: "button", class: "quiet" },
    `Show more of its ${codes.length} codes`);
  more.addEventListener("click", () => {
    more.remove();
    showCodes(card, tree, codes, until);
  });
  card.append(more);
}

function codeElement(tree, code, number, of) {
  const company = tree.company(code, COMPANY).flatMap((word) => [wordLink(tree.words.text[word]), " "]);
  const title = of === 1 ? "Its code" : `Code ${number + 1}`;
  const share = of === 1 ? "" : `, ${perCent(tree.share(code.at(-1)))} of the text`;
  return element("section", { class: "code" },
    element("p", { class: "company" }, element("span", { class: "label" }, "Beside it: "),
      ...(company.length === 0 ? ["no other word"] : company)),
    element("details", number === 0 ? { open: "" } : {},
      element("summary", {}, `${title}: `, element("code", {}, branchesOf(tree, code)),
        ` (${plural(code.length, "decision", "decisions")}${share})`),
      decisionsElement(tree, code)));
}

/* The branches taken, as a string of bits where every node has two. */
function branchesOf(tree, code) {
  const shown = code.slice(0, DECISIONS_SHOWN);
  const binary = shown.every((edge) => tree.fanOut(tree.edgeNode[edge]) === 2);
  const text = shown.map((edge) => tree.branch(edge)).join(binary ? "" : "·");
  return shown.length < code.length ? `${text}…` : text;
}

function decisionsElement(tree, code) {
  const list = element("ol", { class: "decisions" });
  for (const edge of code.slice(0, DECISIONS_SHOWN)) list.append(decisionElement(tree, edge));
  if (code.length > DECISIONS_SHOWN) {
    list.append(element("li", { class: "rest" },
      `and ${plural(code.length - DECISIONS_SHOWN, "decision", "decisions")} more`));
  }
  return list;
}

function decisionElement(tree, edge) {
  const node = tree.edgeNode[edge];
  const name = tree.name(node);
  const made = element("li", {});
  if (name !== null) made.append(element("p", { class: "name" }, "at ", wordElement(name)));
  made.append(sideElement(tree, edge, "taken", ""));
  const others = tree.branches(node).filter((other) => other !== edge);
  if (others.length === 0) return made;
  const rest = others.length - 1;
  made.append(sideElement(tree, others[0], "refused",
    rest === 0 ? "" : `the largest of ${grouped(others.length)} others`));
  return made;
}

/* One branch of a decision: its number, its share of the node's text, its words. */
function sideElement(tree, edge, kind, remark) {
  const words = tree.wordsUnder(edge).map((word) => tree.words.text[word]);
  const child = tree.child[edge];
  const name = child < 0 ? null : tree.name(child);
  const more = tree.leavesUnder(edge) > words.length ? ["…"] : [];
  return element("div", { class: kind },
    element("span", { class: "verdict" }, kind === "taken" ? "takes" : "not"),
    element("span", { class: "branch" }, String(tree.branch(edge))),
    element("span", { class: "share" }, shareBar(tree.shareHere(edge)), perCent(tree.shareHere(edge))),
    element("span", { class: "words" },
      ...(name === null ? [] : [element("span", { class: "name" }, wordElement(name)), " "]),
      ...chips(words), ...more, ...(remark === "" ? [] : [` (${remark})`])));
}

/* The words that are beside a word in both trees. */
function agreementElement(a, b, word) {
  const beside = (tree) => new Set(tree.codes(word).flatMap((code) => tree.company(code, 2 * COMPANY)));
  const inB = beside(b);
  const both = [...beside(a)].filter((near) => inB.has(near)).slice(0, COMPANY);
  const words = both.flatMap((near) => [wordLink(a.words.text[near]), " "]);
  return element("p", { class: "agreement" },
    ...(words.length === 0
      ? ["No word is beside ", wordElement(a.words.text[word]), " in both trees."]
      : ["Beside ", wordElement(a.words.text[word]), " in both trees: ", ...words]));
}
