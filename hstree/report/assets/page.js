"use strict";
/* Sorts the table, and shows the answer for another distance to the lowest perplexity. */

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

/* The slider: the answer of the greatest distance that it reaches, and its row in table and figures. */
function startSlider(slider) {
  const offers = [...document.querySelectorAll(".offer")];
  slider.addEventListener("input", () => {
    const within = Number(slider.value);
    const reached = offers.filter((offer) => Number(offer.dataset.within) <= within + 1e-9).at(-1);
    for (const offer of offers) offer.hidden = offer !== reached;
    for (const row of document.querySelectorAll("[data-row]")) {
      row.classList.toggle("best", row.dataset.row === reached.dataset.chosen);
    }
    const written = `${Number((100 * within).toFixed(1))}%`;
    document.getElementById("within-shown").textContent = `within ${written}`;
    for (const distance of reached.querySelectorAll(".within")) distance.textContent = written;
  });
}

async function start() {
  makeSortable(document.getElementById("rows"));
  const slider = document.getElementById("within");
  if (slider !== null) startSlider(slider);
  const { trees } = data();
  if (trees !== null) {
    if ("DecompressionStream" in window) await Explorer.start(trees);
    else document.getElementById("said").textContent =
      "This browser is too old for the tree explorer: any of 2023 or later will do.";
  }
  document.documentElement.dataset.ready = "";
}

start();
