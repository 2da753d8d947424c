"use strict";
/* Sorts the table, draws the plots, shows and hides rows. */

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

class Plots {
  static async draw(items, figures) {
    const views = await Promise.all(
      items.map((item, i) => Bokeh.embed.embed_item(item, figures[i].querySelector(".plot").id)));
    return new Plots(views.map((view) => view.model ?? view.roots[0].model));
  }

  constructor(models) {
    this.models = models;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.paint());
    /* Paper is white, whatever the screen is. */
    addEventListener("beforeprint", () => this.paint("print"));
    addEventListener("afterprint", () => this.paint());
    this.paint();
    for (const box of document.querySelectorAll("[data-row]")) {
      box.addEventListener("change", () => this.#show(box.dataset.row, box.checked));
    }
  }

  /* Bokeh draws on a canvas, which no style sheet reaches: hand it the page's own colours. */
  paint(medium = "screen") {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => (medium === "print" ? { ink: "#222", faint: "#ddd" }[name]
      : style.getPropertyValue(`--${name}`).trim());
    const ink = colour("ink"), faint = colour("faint");
    for (const plot of this.models) {
      for (const axis of [...plot.left, ...plot.below]) {
        Object.assign(axis, {
          axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: faint,
          major_tick_line_color: faint,
        });
      }
      for (const part of plot.center) {
        if ("grid_line_color" in part) part.grid_line_color = faint;
        if (part.name === "ink") part.line_color = ink;
      }
      for (const renderer of plot.renderers) {
        if (renderer.name === "ink") (renderer.glyph ?? renderer).line_color = ink;
      }
    }
  }

  #show(name, visible) {
    for (const plot of this.models) {
      for (const part of [...plot.renderers, ...plot.center, ...plot.above, ...plot.right]) {
        if (part.name === name) part.visible = visible;
      }
    }
  }
}

async function start() {
  makeSortable(document.getElementById("rows"));
  const packed = data("packed-trees");
  if (packed !== null) {
    if ("DecompressionStream" in window) await Explorer.start(packed);
    else document.getElementById("found").textContent =
      "This browser is too old for the tree explorer: any of 2023 or later will do.";
  }
  const figures = [...document.querySelectorAll("#plots figure")];
  await Plots.draw(data("plot-items"), figures);
  document.documentElement.dataset.ready = "";
}

start();
