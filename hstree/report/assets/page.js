"use strict";
/* Sorts the table and starts the tree explorer. */

/* Sort by a column when its title is clicked, in ascending, then in descending order. Candidates
   without a value come last. */
function makeSortable(table) {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    title.querySelector("button").addEventListener("click", () => {
      const isAscending = title.getAttribute("aria-sort") !== "ascending";
      for (const other of titles) other.removeAttribute("aria-sort");
      title.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
      const key = ({ cells }) => (column === 0 ? cells[0].textContent : Number(cells[column].dataset.value));
      const compare = (a, b) => {
        const [x, y] = isAscending ? [key(a), key(b)] : [key(b), key(a)];
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
  const { trees } = JSON.parse(document.getElementById("page").textContent);
  if (trees !== null && "DecompressionStream" in window) await Explorer.start(trees);
  else if (trees !== null) document.getElementById("status").textContent =
    "The tree explorer requires a browser from 2023 or later.";
  document.documentElement.dataset.ready = "";
}

start();
