"use strict";
// Draws the charts of the page, each from the JSON inside of its figure. A chart is drawn when it comes into view.
(() => {
  const root = document.documentElement;
  const element = (name, attributes, parent, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return parent ? parent.appendChild(made) : made;
  };
  const html = (name, attributes, parent, text) => {
    const made = document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return parent ? parent.appendChild(made) : made;
  };
  const sums = (list, scale) => {
    let sum = 0;
    return Float64Array.from(list, (value) => (sum += value) * scale);
  };
  // A value with the prefix of its unit: 1.45 kB, 32 ms.
  const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]];
  const prefix = (size, unit) => {
    if (!unit) return [1, ""];
    const fits = PREFIXES.filter(([factor]) => unit === "s" ? factor <= 1 : factor >= 1);
    return fits.find(([factor]) => size >= factor) || [1, ""];
  };
  const decimals = (step) => Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const shown = (value, unit) => {
    const [factor, letter] = prefix(Math.abs(value), unit);
    return `${+(value / factor).toPrecision(4)} ${letter}${unit}`.trim();
  };
  const ticks = (from, to, most) => {
    const raw = (to - from) / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw * 0.999);
    const found = [];
    // Counted with a small index: beyond 2^53 adding one changes nothing.
    const first = Math.ceil(from / step - 1e-9), count = Math.min(1000, Math.floor((to - from) / step) + 2);
    for (let i = 0; i < count && (first + i) * step <= to + step * 1e-6; i++) found.push((first + i) * step);
    return [found, step];
  };
  // The first index whose value is not below `value`.
  const search = (list, value) => {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  };

  // The symbols of series with a single point, in the legend and as paths: others than those with the same colour.
  const SYMBOLS = "●□△◇";
  const SHAPES = [(x, y) => `M${x} ${y}h0`, (x, y) => `M${x - 4} ${y - 4}h8v8h-8z`, (x, y) => `M${x} ${y - 5}l5 9h-10z`,
    (x, y) => `M${x - 5} ${y}l5 -5l5 5l-5 5z`];
  const shapeOf = (index) => Math.floor(index / 8) % SHAPES.length;
  // The most series with single points whose names are beside them.
  const NAMED = 8;

  const groups = new Map();
  class Chart {
    constructor(figure) {
      this.figure = figure;
      const data = JSON.parse(figure.querySelector("script").textContent);
      this.data = data;
      this.series = data.series.map((one) => {
        const x = sums(one.x, data.x.scale);
        const low = sums(one.y, data.y.scale);
        const high = one.h ? low.map((value, index) => value + one.h[index] * data.y.scale) : low;
        return { ...one, x, low, high, hidden: false };
      });
      this.group = groups.get(data.group) || { range: null, charts: [] };
      if (data.group) groups.set(data.group, this.group);
      this.group.charts.push(this);
      const ends = this.series.filter((one) => one.x.length).flatMap(({ x }) => [x[0], x[x.length - 1]]);
      [this.first, this.last] = ends.length
        ? [ends.reduce((a, b) => Math.min(a, b)), ends.reduce((a, b) => Math.max(a, b))] : [0, 1];
      if (data.x.zero) this.first = Math.min(0, this.first);
      // Marks at the ends of other axes are not cut.
      if (data.x.label !== "time") this.last += (this.last - this.first) * 0.03;
      if (this.first === this.last) [this.first, this.last] = [this.first - 0.5, this.last + 0.5];
      this.controls();
    }

    controls() {
      const bar = html("div", { class: "bar" });
      bar.appendChild(this.figure.querySelector("figcaption"));
      const zoom = html("div", { class: "zoom" }, bar);
      const button = (text, label, act) => html("button", { type: "button", "aria-label": label, title: label }, zoom, text)
        .addEventListener("click", act);
      button("+", "Zoom in", () => this.scale(0.5));
      button("−", "Zoom out", () => this.scale(2));
      button("←", "Earlier", () => this.move(-0.25));
      button("→", "Later", () => this.move(0.25));
      button("All", "Show the whole range", () => this.zoom(null));
      this.svg = element("svg", { tabindex: 0, role: "img", "aria-label": bar.querySelector("figcaption").textContent });
      const legend = html("div", { class: "legend" });
      this.series.forEach((one, index) => {
        const item = html("button", { type: "button", class: one.color, "aria-pressed": true }, legend);
        if (this.isFew(one)) html("b", {}, item, SYMBOLS[shapeOf(index)]); else html("i", {}, item);
        html("span", {}, item, one.name);
        item.addEventListener("click", () => {
          one.hidden = !one.hidden;
          item.setAttribute("aria-pressed", !one.hidden);
          this.draw();
        });
      });
      this.output = html("output", {});
      this.figure.append(bar, legend, this.svg, this.output);
      const reduced = this.series.filter((one) => one.seen > one.x.length);
      if (reduced.length) {
        html("small", {}, this.figure, "Reduced: " +
          reduced.map((one) => `${one.name} to ${one.x.length} of ${one.seen} points`).join(", "));
      }
      this.svg.addEventListener("pointerdown", (event) => {
        if (event.button === 0) this.start = this.place(event);
      });
      this.svg.addEventListener("pointermove", (event) => this.point(this.place(event)));
      this.svg.addEventListener("pointerleave", () => { this.start = undefined; this.point(null); });
      this.svg.addEventListener("pointercancel", () => { this.start = undefined; this.point(null); });
      this.svg.addEventListener("pointerup", (event) => {
        const [start, end] = [this.start, this.place(event)];
        this.start = undefined;
        if (start !== undefined && Math.abs(end - start) > 6) {
          this.zoom([Math.min(start, end), Math.max(start, end)].map((at) => this.value(at)));
        }
      });
      this.svg.addEventListener("dblclick", () => this.zoom(null));
      this.svg.addEventListener("wheel", (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.scale(event.deltaY < 0 ? 0.8 : 1.25, this.value(this.place(event)));
      }, { passive: false });
      this.svg.addEventListener("keydown", (event) => {
        const acts = { "+": () => this.scale(0.5), "-": () => this.scale(2), ArrowLeft: () => this.move(-0.25),
          ArrowRight: () => this.move(0.25), Escape: () => this.zoom(null), "0": () => this.zoom(null) };
        if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
      });
    }

    isFew(one) { return one.look === "dots" && one.x.length === 1; }
    range() { return this.group.range || [this.first, this.last]; }
    place(event) { return event.clientX - this.svg.getBoundingClientRect().left; }
    value(at) {
      const [from, to] = this.range();
      return from + (Math.min(Math.max(at - this.left, 0), this.width) / this.width) * (to - from);
    }
    scale(factor, about) {
      const [from, to] = this.range();
      const middle = about === undefined ? (from + to) / 2 : about;
      this.zoom([middle - (middle - from) * factor, middle + (to - middle) * factor]);
    }
    move(share) {
      const [from, to] = this.range();
      const by = Math.min(Math.max((to - from) * share, this.first - from), this.last - to);
      this.zoom([from + by, to + by]);
    }
    zoom(range) {
      if (range) {
        const [from, to] = [Math.max(range[0], this.first), Math.min(range[1], this.last)];
        if (to - from < (this.last - this.first) * 1e-7) return;
        range = from <= this.first && to >= this.last ? null : [from, to];
      }
      this.group.range = range;
      this.group.charts.forEach((chart) => chart.isDrawn && chart.draw());
    }

    // One chart that fails leaves the others as they are.
    draw() {
      this.isDrawn = true;
      try { this.paint(); } catch (error) { this.output.textContent = `This chart cannot be drawn: ${error}`; }
    }
    paint() {
      const { svg, data } = this;
      const whole = Math.max(240, svg.clientWidth || this.figure.clientWidth || 700);
      const height = whole < 500 ? Math.round(data.height * 0.85) : data.height;
      [this.left, this.width] = [62, whole - 62 - 12];
      const [top, inner] = [10, height - 10 - 38];
      const [from, to] = this.range();
      const px = this.px = (x) => ((x - from) / (to - from)) * this.width;
      // The values in view, and with lines their neighbours outside.
      let [low, high] = [data.y.zero ? 0 : Infinity, data.y.zero ? 0 : -Infinity];
      for (const one of this.series) {
        one.start = Math.max(0, search(one.x, from) - 1);
        one.end = Math.min(one.x.length, search(one.x, to + (to - from) * 1e-9) + 1);
        if (one.hidden) continue;
        for (let i = one.start; i < one.end; i++) {
          const isOutside = one.x[i] < from || one.x[i] > to;
          if (isOutside && one.look !== "line" && one.look !== "step") continue;
          low = Math.min(low, one.low[i]);
          high = Math.max(high, one.high[i]);
        }
      }
      if (!(low <= high)) [low, high] = [0, 1];
      if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) / 2, high + Math.abs(high) / 2];
      const room = (high - low) * 0.05;
      [low, high] = [data.y.zero && low === 0 ? 0 : low - room, high + room];
      const py = (y) => inner - ((y - low) / (high - low)) * inner;

      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${whole} ${height}`);
      svg.setAttribute("height", height);
      this.figure.dataset.from = from;
      this.figure.dataset.to = to;
      const [ys, step] = ticks(low, high, inner / 45);
      const [factor, letter] = prefix(Math.max(Math.abs(low), Math.abs(high)), data.y.unit);
      for (const y of ys) {
        const at = top + py(y);
        element("line", { class: "grid", x1: this.left, x2: whole - 12, y1: at, y2: at }, svg);
        element("text", { x: this.left - 6, y: at + 4, "text-anchor": "end" }, svg, (y / factor).toFixed(decimals(step / factor)));
      }
      const [xs, by] = ticks(from, to, this.width / 90);
      const [over, sign] = data.x.label === "time" ? [1, ""] : prefix(Math.max(Math.abs(from), Math.abs(to)), data.x.unit);
      for (const x of xs) {
        const at = this.left + px(x);
        element("line", { class: "grid", x1: at, x2: at, y1: top, y2: top + inner }, svg);
        element("text", { x: at, y: top + inner + 16, "text-anchor": "middle" }, svg, (x / over).toFixed(decimals(by / over)));
      }
      const label = ({ label, unit }, letter) => unit ? `${label} (${letter}${unit})` : label;
      element("text", { x: this.left + this.width / 2, y: height - 5, "text-anchor": "middle" }, svg, label(data.x, sign));
      element("text", { x: 12, y: top + inner / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${top + inner / 2})` },
        svg, label(data.y, letter));
      const plot = element("svg", { x: this.left, y: top, width: this.width, height: inner, overflow: "hidden" }, svg);
      this.series.forEach((one, index) => {
        const dash = this.series.length > 8 ? ` dash${Math.min(2, Math.floor(index / 8))}` : "";
        const few = this.isFew(one) ? ` few shape${shapeOf(index)}` : "";
        const path = one.hidden ? "" : this[one.look](one, px, py, SHAPES[few ? shapeOf(index) : 0]);
        if (few && path && this.series.length <= NAMED) {
          const [x, y] = [px(one.x[0]), py(one.low[0]) + 4], isRight = x < this.width * 0.8;
          element("text", { x: x + (isRight ? 9 : -9), y, "text-anchor": isRight ? "start" : "end" }, plot, one.name);
        }
        element("path", { class: `${one.look} ${one.color}${dash}${few}`, d: path, "data-points": one.end - one.start }, plot);
      });
      const bottom = top + inner;
      this.band = element("rect", { class: "select", y: top, height: inner, width: 0, visibility: "hidden" }, svg);
      this.cursor = element("line", { class: "cursor", y1: top, y2: bottom, visibility: "hidden" }, svg);
    }

    // Lines: of the points in one column of pixels the first, lowest, highest and last.
    line(one, px, py, isStep) {
      const parts = [];
      const add = (i) => {
        const [x, y] = [px(one.x[i]).toFixed(1), py(one.low[i]).toFixed(1)];
        parts.push(parts.length ? (isStep ? `H${x}V${y}` : `L${x} ${y}`) : `M${x} ${y}`);
      };
      for (let i = one.start; i < one.end;) {
        const column = Math.floor(px(one.x[i]));
        let [lowest, highest, last] = [i, i, i];
        while (last + 1 < one.end && Math.floor(px(one.x[last + 1])) === column) {
          last += 1;
          if (one.low[last] < one.low[lowest]) lowest = last;
          if (one.low[last] > one.low[highest]) highest = last;
        }
        [...new Set([i, lowest, highest, last])].sort((a, b) => a - b).forEach(add);
        i = last + 1;
      }
      return parts.join("");
    }
    step(one, px, py) { return this.line(one, px, py, true); }
    // Other marks: those on one pixel are drawn once.
    marks(one, px, py, mark) {
      const drawn = new Set();
      for (let i = one.start; i < one.end; i++) {
        const x = px(one.x[i]);
        if (x < -3 || x > this.width + 3) continue;
        drawn.add(mark(x.toFixed(0), py(one.high[i]), py(one.low[i])));
      }
      return [...drawn].join("");
    }
    dots(one, px, py, shape) { return this.marks(one, px, py, (x, y) => shape(+x, +y.toFixed(0))); }
    bars(one, px, py) {
      return this.marks(one, px, py, (x, high, low) => `M${x} ${low.toFixed(1)}V${Math.min(high, low - 1.5).toFixed(1)}`);
    }
    crosses(one, px, py) { return this.marks(one, px, py, (x, y) => `M${x - 4} ${(y - 4).toFixed(0)}l8 8m0-8l-8 8`); }

    // Shows the values at a place, and the range that is being chosen.
    point(at) {
      if (!this.cursor) return;
      const isInside = at !== null && at >= this.left && at <= this.left + this.width;
      this.cursor.setAttribute("visibility", isInside ? "visible" : "hidden");
      this.band.setAttribute("visibility", this.start !== undefined && at !== null ? "visible" : "hidden");
      if (!isInside) { this.output.textContent = ""; return; }
      this.cursor.setAttribute("x1", at);
      this.cursor.setAttribute("x2", at);
      if (this.start !== undefined) {
        this.band.setAttribute("x", Math.min(this.start, at));
        this.band.setAttribute("width", Math.abs(at - this.start));
      }
      const [value, { x, y }] = [this.value(at), this.data];
      const found = [];
      for (const one of this.series) {
        if (one.hidden || !one.x.length || found.length === 8) continue;
        let i = Math.min(search(one.x, value), one.x.length - 1);
        const before = i > 0 && (one.look === "step" ? one.x[i] > value : value - one.x[i - 1] < one.x[i] - value);
        if (before) i -= 1;
        if (one.look !== "step" && Math.abs(this.px(one.x[i]) - this.px(value)) > 24) continue;
        const range = one.h && one.h[i] ? `${shown(one.low[i], y.unit)} to ${shown(one.high[i], y.unit)}` : shown(one.low[i], y.unit);
        found.push(`${one.name} ${range}`);
      }
      const place = x.label === "time" ? `${value.toFixed(4)} s` : shown(value, x.unit);
      this.output.textContent = [place, ...found].join(" · ");
    }
  }

  const charts = [...document.querySelectorAll("figure.chart")].flatMap((figure) => {
    try { return [new Chart(figure)]; } catch (error) {
      html("small", {}, figure, `This chart cannot be drawn: ${error}`);
      return [];
    }
  });
  const byFigure = new Map(charts.map((chart) => [chart.figure, chart]));
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    const chart = byFigure.get(entry.target);
    if (entry.isIntersecting && !chart.isDrawn) chart.draw();
  }), { rootMargin: "400px" });
  charts.forEach((chart) => {
    // What is in view at once; the rest keeps its place.
    const { top, height } = chart.figure.getBoundingClientRect();
    if (height > 0 && top < innerHeight) chart.draw(); else chart.svg.setAttribute("height", chart.data.height);
    seen.observe(chart.figure);
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    charts.forEach((chart) => chart.isDrawn && chart.draw());
  });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
    charts.forEach((chart) => chart.draw());
  });
  const theme = document.querySelector(".theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
})();
