"use strict";
/* Sorts the table, and starts the tree explorer. */

/* All that the page shows, as data. */
function data() {
  return JSON.parse(document.getElementById("page").textContent);
}

/* Sort by a column, ascending or descending; rows without a figure come last. */
function makeSortable(table) {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    title.querySelector("button").addEventListener("click", () => {
      const rising = title.getAttribute("aria-sort") !== "ascending";
      for (const other of titles) other.removeAttribute("aria-sort");
      title.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const key = ({ cells }) => (column === 0 ? cells[0].textContent : Number(cells[column].dataset.value));
      const compare = (a, b) => {
        const [x, y] = rising ? [key(a), key(b)] : [key(b), key(a)];
        if (column === 0) return x.localeCompare(y, "en", { numeric: true });
        return Number.isNaN(key(a)) - Number.isNaN(key(b)) || x - y;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
    });
  });
}

async function start() {
  makeSortable(document.getElementById("rows"));
  const { trees } = data();
  if (trees !== null) {
    if ("DecompressionStream" in window) await Explorer.start(trees);
    else document.getElementById("said").textContent =
      "This browser is too old for the tree explorer: any of 2023 or later will do.";
  }
  document.documentElement.dataset.ready = "";
}

start();
