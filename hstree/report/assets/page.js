"use strict";
/* Sorts the table, and shows the answer for another distance to the lowest perplexity. */

function data(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/* Sort by a column, ascending or descending; rows without a figure come last. */
function makeSortable(table) {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    title.querySelector("button").addEventListener("click", () => {
      const rising = title.getAttribute("aria-sort") !== "ascending";
      for (const other of titles) other.removeAttribute("aria-sort");
      title.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const key = (row) => {
        const cell = row.cells[column];
        if (column === 0) return cell.textContent;
        return "value" in cell.dataset ? Number(cell.dataset.value) : null;
      };
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const order = column === 0 ? x.localeCompare(y, "en", { numeric: true }) : x - y;
        return rising ? order : -order;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(compare));
    });
  });
}

/* The slider: the answer of the greatest distance that it reaches, and its row in the table. */
function startSlider(slider) {
  const offers = [...document.querySelectorAll(".answer[data-within]")];
  const show = () => {
    const within = Number(slider.value);
    const reached = offers.filter((offer) => Number(offer.dataset.within) <= within + 1e-9).at(-1);
    for (const offer of offers) offer.hidden = offer !== reached;
    for (const row of document.querySelectorAll("#rows [data-row]")) {
      row.classList.toggle("best", row.dataset.row === reached.dataset.chosen);
    }
    const written = `${Number((100 * within).toFixed(1))}%`;
    document.getElementById("within-shown").textContent = `within ${written}`;
    for (const place of reached.querySelectorAll(".within")) place.textContent = written;
  };
  slider.addEventListener("input", show);
}

async function start() {
  makeSortable(document.getElementById("rows"));
  startCharts();
  const slider = document.getElementById("within");
  if (slider !== null) startSlider(slider);
  const packed = data("packed-trees");
  if (packed !== null) {
    if ("DecompressionStream" in window) await Explorer.start(packed);
    else document.getElementById("found").textContent =
      "This browser is too old for the tree explorer: any of 2023 or later will do.";
  }
  document.documentElement.dataset.ready = "";
}

start();
