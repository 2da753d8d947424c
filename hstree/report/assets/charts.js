"use strict";
/* Draws the charts anew for the rows that are shown: ranges, ticks, the front and the names.

   The twin of hstree/report/scales.py and charts.py, which drew them first: without JavaScript they
   stay as they are. */

const CHARACTER = 6.6, LINE = 15, APART = 8, MOST_TICKS = 7, ROOM = 0.06, ALONE = 0.05;
const SVG = "http://www.w3.org/2000/svg";

function unitsOf(value, scale) {
  return scale === "log" ? Math.log10(value) : value;
}

/* The range of an axis, in its units, that has room for values of this range. */
function extentOf(low, high, scale) {
  if (scale === "count") return [0, Math.max(high, 1)];
  if (scale === "zero") return [0, (high || 1) * (1 + ROOM)];
  const span = high - low || (scale === "log" ? ALONE : Math.abs(high) * ALONE || 1);
  return [low - ROOM * span, high + ROOM * span];
}

/* The values of an axis's ticks, whose labels have room beside another. */
function ticksOf(low, high, scale, length, vertical) {
  let best = [];
  let ends = []; // of the coarsest choice, where no choice has room
  for (const candidate of tickCandidates(low, high, scale)) {
    if (ends.length === 0) ends = [candidate[0], candidate[candidate.length - 1]];
    const places = candidate.map((value) => (unitsOf(value, scale) - low) / (high - low) * length);
    const widths = candidate.map((value) => (vertical ? LINE : CHARACTER * tickLabel(value).length));
    const hasRoom = places.every((place, i) => i === 0
      || place - places[i - 1] >= (widths[i - 1] + widths[i]) / 2 + (vertical ? 0 : APART));
    if (candidate.length <= 2 && best.length === 0) best = candidate;
    else if (hasRoom && candidate.length <= MOST_TICKS) best = candidate;
  }
  return best.length ? best : ends;
}

function range(first, last) {
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => first + i);
}

/* Choices of two or more ticks, from the coarsest. */
function tickCandidates(low, high, scale) {
  const chosen = [];
  if (scale === "log" && high - low >= 1) {
    const decades = range(Math.ceil(low), Math.floor(high)).map((decade) => 10 ** decade);
    for (const stride of [3, 2, 1]) chosen.push(decades.filter((_, i) => i % stride === 0));
    for (const mantissas of [[1, 3], [1, 2, 5]]) {
      const every = range(Math.floor(low), Math.floor(high))
        .flatMap((decade) => mantissas.map((m) => m * 10 ** decade));
      chosen.push(every.filter((value) => low <= Math.log10(value) && Math.log10(value) <= high));
    }
    return chosen.filter((candidate) => candidate.length > 1);
  }
  const [first, last] = scale === "log" ? [10 ** low, 10 ** high] : [low, high];
  const exponent = Math.floor(Math.log10(last - first));
  for (const power of [exponent, exponent - 1]) {
    for (const mantissa of [5, 2, 1]) {
      const step = mantissa * 10 ** power;
      if (scale === "count" && step < 1) continue;
      const begin = Math.ceil(first / step - 1e-9), end = Math.floor(last / step + 1e-9);
      chosen.push(range(begin, end).map((i) => Number((i * step).toPrecision(10))));
    }
  }
  return chosen.filter((candidate) => candidate.length > 1);
}

function tickLabel(value) {
  const written = (one) => Number(one.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 10 });
  if (Math.abs(value) >= 1e6) return `${written(value / 1e6)}M`;
  return Math.abs(value) >= 1e4 ? `${written(value / 1e3)}k` : written(value);
}

/* Move ascending places apart until each is `gap` from the next, between two bounds. */
function spreadApart(places, gap, low, high) {
  const moved = [];
  for (const place of places) moved.push(Math.max(place, low, moved.length > 0 ? moved.at(-1) + gap : low));
  for (let i = moved.length - 1; i >= 0; i--) {
    moved[i] = Math.min(moved[i], i + 1 < moved.length ? moved[i + 1] - gap : high);
  }
  return moved;
}

/* The points that none beats in being low and far to a side, from that side. */
function frontOf(points, better) {
  const sign = better === "right" ? -1 : 1, front = [];
  for (const [x, y] of [...points].sort((a, b) => sign * (a[0] - b[0]) || a[1] - b[1])) {
    if (y < (front.at(-1)?.[1] ?? Infinity)) front.push([x, y]);
  }
  return front;
}

/* The corners of a front. */
function staircase(front) {
  return front.flatMap(([x, y], i) => i === 0 ? [[x, y]] : [[x, front[i - 1][1]], [x, y]]);
}

function pointsOf(element, name = "at") {
  return element.dataset[name].split(" ").map((pair) => pair.split(",").map(Number));
}

class Chart {
  constructor(svg) {
    this.svg = svg;
    this.groups = [...svg.querySelectorAll(".row")];
    [this.left, this.right, this.top, this.bottom] = svg.dataset.area.split(" ").map(Number);
    this.isStrips = "strip" in svg.dataset;
  }

  /* Draw the rows of these numbers; nothing changes where none of them is in the chart. */
  draw(shown) {
    const groups = this.groups.filter((group) => shown.has(group.dataset.row));
    const marks = groups.flatMap((group) => [...group.querySelectorAll("[data-at]")])
      .map((element) => ({ element, points: pointsOf(element), row: element.closest(".row").dataset.row }));
    if (marks.length === 0) return;
    if (this.isStrips) this.#stack(groups);
    const x = this.#across(marks);
    const y = this.isStrips ? (value) => value : this.#upwards(marks);
    for (const { element, points } of marks) this.#place(element, points.map(([a, b]) => [x(a), y(b)]));
    if (!this.isStrips) this.#names(groups, x, y);
    this.#front(groups, marks.filter(({ element }) => element.matches(".dot")), x, y);
  }

  /* The front, and in grey the rows that are not on it. */
  #front(groups, dots, x, y) {
    const line = this.svg.querySelector(".front");
    if (line === null) return;
    const front = frontOf(dots.map(({ points }) => points[0]), line.dataset.better);
    line.setAttribute("points", staircase(front).map(([a, b]) => `${x(a)},${y(b)}`).join(" "));
    const isOn = ([a, b]) => front.some(([c, d]) => a === c && b === d);
    const best = new Set(dots.filter(({ points }) => isOn(points[0])).map(({ row }) => row));
    for (const group of groups) group.classList.toggle("beaten", !best.has(group.dataset.row));
  }

  #across(marks) {
    const scale = this.svg.dataset.x;
    if (scale === "names") {
      const last = this.svg.querySelectorAll(".x .tick").length;
      return (value) => this.left + (value + 0.4) / (last - 0.2) * (this.right - this.left);
    }
    const values = marks.flatMap(({ points }) => points.map(([a]) => a));
    const [low, high] = extentOf(Math.min(...values), Math.max(...values), scale);
    const place = (value) => this.left + (value - low) / (high - low) * (this.right - this.left);
    const ticks = ticksOf(low, high, scale, this.right - this.left, false).map((value) => {
      const tick = svgElement("g", { class: "tick", transform: `translate(${place(unitsOf(value, scale))} 0)` });
      const text = svgElement("text", { class: "middle", y: this.bottom + 14 });
      text.textContent = tickLabel(value);
      tick.append(svgElement("line", { y1: this.top, y2: this.bottom }), text);
      return tick;
    });
    this.svg.querySelector(".x.ticks").replaceChildren(...ticks);
    return place;
  }

  #upwards(marks) {
    const scale = this.svg.dataset.y, cap = Number(this.svg.dataset.cap || Infinity);
    const level = this.svg.querySelector(".level");
    const byRow = new Map();
    for (const { row, points } of marks) {
      byRow.set(row, [...(byRow.get(row) ?? []), ...points.map(([, b]) => b)]);
    }
    const each = [...byRow.values()];
    let low = Math.min(...each.flat());
    let high = Math.max(Math.min(Math.max(...each.flat()), low + cap), ...each.map((of) => Math.min(...of)));
    if (cap === Infinity) high = Math.max(...each.flat());
    if (level !== null) {
      low = Math.min(low, Number(level.dataset.level));
      high = Math.max(high, Number(level.dataset.level));
    }
    [low, high] = extentOf(low, high, scale);
    const place = (value) => this.bottom + (value - low) / (high - low) * (this.top - this.bottom);
    const ticks = ticksOf(low, high, scale, this.bottom - this.top, true).map((value) => {
      const tick = svgElement("g", { class: "tick", transform: `translate(0 ${place(unitsOf(value, scale))})` });
      const text = svgElement("text", { class: "end", x: this.left - 5, y: 4 });
      text.textContent = tickLabel(value);
      tick.append(svgElement("line", { x1: this.left, x2: this.right }), text);
      return tick;
    });
    this.svg.querySelector(".y.ticks").replaceChildren(...ticks);
    if (level !== null) {
      const at = place(Number(level.dataset.level));
      level.setAttribute("points", `${this.left},${at} ${this.right},${at}`);
    }
    return place;
  }

  #place(element, points) {
    if (element.matches("polyline")) element.setAttribute("points", points.map((point) => point.join()).join(" "));
    else if (element.matches("rect")) {
      element.setAttribute("x", points[0][0]);
      element.setAttribute("width", Math.max(points[1][0] - points[0][0], 0.5));
    } else element.setAttribute("transform", `translate(${points[0].join(" ")})`);
  }

  /* The names at the right, apart from each other, with a line to where their rows end. */
  #names(groups, x, y) {
    const within = (place) => Math.min(Math.max(place, this.top), this.bottom);
    const names = groups.filter((group) => group.parentNode.matches(".names")).map((group) => {
      const leader = group.querySelector(".leader"), [[a, b]] = pointsOf(leader, "from");
      return { leader, text: group.querySelector("text"), at: [x(a), within(y(b))] };
    }).sort((one, other) => one.at[1] - other.at[1]);
    const places = spreadApart(names.map(({ at }) => at[1]), LINE, this.top - 8, this.bottom);
    names.forEach(({ leader, text, at }, i) => {
      leader.setAttribute("points", `${at.join()} ${this.right + 6},${places[i]}`);
      text.setAttribute("y", places[i] + 4);
    });
  }

  /* Strips move up where those above them are hidden. */
  #stack(groups) {
    const step = Number(this.svg.dataset.strip);
    groups.forEach((group, i) => group.setAttribute("transform", `translate(0 ${6 + step * i})`));
    this.bottom = 6 + step * groups.length;
    this.svg.setAttribute("viewBox", `0 0 430 ${this.bottom + 40}`);
    this.svg.querySelector(":scope > .title").setAttribute("y", this.bottom + 33);
  }
}

function svgElement(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/* All charts, and the boxes that show and hide rows. */
function startCharts() {
  const charts = [...document.querySelectorAll(".chart")].map((svg) => new Chart(svg));
  const boxes = [...document.querySelectorAll("[data-show]")];
  const draw = () => {
    const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.show));
    for (const chart of charts) chart.draw(shown);
  };
  for (const box of boxes) box.addEventListener("change", draw);
}
