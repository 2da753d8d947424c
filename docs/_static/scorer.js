// Scores of search results: pages for tasks come before the reference of modules.
"use strict";
var Scorer = {
  score: ([docname, title, anchor, description, score]) =>
    docname.startsWith("api") ? score - 50 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
