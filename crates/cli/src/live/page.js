"use strict";
// Shows what the server sends four times a second, and keeps what it sent in the last two minutes.
(() => {
  const KEPT = 120, SHORTEST = 15, SILENT = 3000, HEIGHT = 150, LEFT = 52, RIGHT = 8, TOP = 8, BOTTOM = 20;
  const by = (id) => document.getElementById(id);
  const element = (name, attributes, parent, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return parent ? parent.appendChild(made) : made;
  };
  const html = (name, parent, text) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    return parent ? parent.appendChild(made) : made;
  };
  // Writes only what has changed: the rest of the page is not laid out again.
  const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  // Gives `parent` as many children as there are items.
  const fit = (parent, count, make) => {
    while (parent.children.length > count) parent.lastElementChild.remove();
    while (parent.children.length < count) make(parent);
    return parent.children;
  };
  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    return Math.abs(value) >= 1e4 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
  };

  class Chart {
    constructor(title, unit) {
      this.unit = unit;
      this.series = new Map();
      this.figure = html("figure", by("charts"));
      this.figure.dataset.title = title;
      html("figcaption", this.figure, unit ? `${title} (${unit})` : title);
      this.legend = html("ul", this.figure);
      this.svg = element("svg", { role: "img", tabindex: 0, "aria-label": title }, this.figure);
      this.output = html("output", this.figure);
      this.svg.addEventListener("pointermove", (event) => {
        const box = this.svg.getBoundingClientRect();
        this.point((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT));
      });
      this.svg.addEventListener("pointerleave", () => this.point(null));
      this.svg.addEventListener("blur", () => this.point(null));
      this.svg.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -0.01, ArrowRight: 0.01 }[event.key];
        if (!step) return;
        event.preventDefault();
        this.point((this.share ?? 1) + step);
      });
    }
    point(share) {
      this.share = share === null ? null : Math.min(1, Math.max(0, share));
      this.draw();
    }
    add(at, { kind, series }) {
      for (const [name, value] of series) {
        if (!this.series.has(name)) {
          const item = html("li", this.legend);
          item.className = `c${this.series.size % 8}`;
          this.series.set(name, { points: [], text: html("span", item) });
        }
        const one = this.series.get(name);
        const [before, last] = [one.last, { at, value }];
        one.last = last;
        let drawn = value;
        if (kind === "counter") {
          const grown = before && value !== null && before.value !== null ? value - before.value : -1;
          drawn = grown < 0 || at <= before.at ? null : grown / (at - before.at);
        }
        // After a pause the line begins again.
        if (before && at - before.at > SILENT / 1000) one.points.push([at, null]);
        else one.points.push([at, drawn]);
        while (one.points[0][0] < at - KEPT) one.points.shift();
      }
      this.first ??= at;
      this.at = at;
    }
    draw() {
      const { svg, at } = this;
      const span = Math.min(KEPT, Math.max(SHORTEST, at - this.first));
      const whole = svg.clientWidth || 400, width = whole - LEFT - RIGHT, inner = HEIGHT - TOP - BOTTOM;
      let high = 0;
      for (const { points } of this.series.values()) for (const [, value] of points) if (value > high) high = value;
      const raw = (high || 1) / 3, power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw * 0.999);
      const top = Math.max(step, Math.ceil(high / step - 1e-9) * step);
      const px = (time) => LEFT + (1 - (at - time) / span) * width;
      const py = (value) => TOP + (1 - value / top) * inner;
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${whole} ${HEIGHT}`);
      for (let value = 0; value <= top * 1.001; value += step) {
        element("line", { class: "grid", x1: LEFT, x2: whole - RIGHT, y1: py(value), y2: py(value) }, svg);
        element("text", { x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, svg, shown(+value.toPrecision(6)));
      }
      for (const share of [1, 0.75, 0.5, 0.25, 0]) {
        const ago = Math.round(share * span), anchor = share === 0 ? "end" : share === 1 ? "start" : "middle";
        element("text", { x: px(at - ago), y: HEIGHT - 5, "text-anchor": anchor }, svg, ago ? `−${ago} s` : "now");
      }
      let color = 0;
      for (const [name, { points, text }] of this.series) {
        let path = "", isDrawing = false;
        for (const [time, value] of points) {
          if (value !== null) path += `${isDrawing ? "L" : "M"}${px(time).toFixed(1)} ${py(value).toFixed(1)}`;
          isDrawing = value !== null;
        }
        element("path", { class: `c${color++ % 8}`, d: path, "data-points": points.length }, svg);
        write(text, `${name} ${shown(points[points.length - 1][1])}`);
      }
      if (this.share === null || this.share === undefined) return write(this.output, "");
      const time = at - (1 - this.share) * span;
      element("line", { class: "cursor", x1: px(time), x2: px(time), y1: TOP, y2: TOP + inner }, svg);
      const values = [...this.series].map(([name, { points }]) => {
        const near = points.reduce((a, b) => (Math.abs(b[0] - time) < Math.abs(a[0] - time) ? b : a));
        return `${name} ${Math.abs(near[0] - time) < 1 ? shown(near[1]) : "–"}`;
      });
      write(this.output, `${(at - time).toFixed(1)} s ago: ${values.join(", ")} ${this.unit}`);
    }
  }

  const charts = new Map();
  const figures = (list) => {
    const items = fit(by("figures"), list.length, (parent) => {
      const item = html("div", parent);
      html("dt", item);
      html("dd", item);
    });
    list.forEach(([name, text], index) => {
      write(items[index].children[0], name);
      write(items[index].children[1], text);
    });
  };
  const table = (many) => {
    by("many").hidden = !many;
    if (!many) return;
    const { title, columns, rows, total } = many;
    write(by("many-title"), title);
    const count = rows.length < total ? `${rows.length} of ${total}` : `${total}`;
    write(by("many-count"), count);
    const isNumber = columns.map((_, column) => {
      const cells = rows.map((row) => row[column]).filter((cell) => cell !== null && cell !== undefined);
      return cells.length > 0 && cells.every((cell) => typeof cell === "number");
    });
    const heads = fit(by("columns"), columns.length, (parent) => { html("th", parent).scope = "col"; });
    columns.forEach((column, index) => {
      write(heads[index], column);
      heads[index].className = isNumber[index] ? "n" : "";
    });
    const lines = fit(by("rows"), rows.length, (parent) => html("tr", parent));
    rows.forEach((row, index) => {
      const cells = fit(lines[index], columns.length, (parent) => html("td", parent));
      columns.forEach((_, column) => {
        const cell = row[column];
        cells[column].className = isNumber[column] ? "n" : "";
        write(cells[column], typeof cell === "string" ? cell : shown(cell));
      });
    });
  };

  let source, retry, last, heard, isWaiting = false;
  const show = () => {
    isWaiting = false;
    write(by("title"), last.title);
    document.title = last.title;
    figures(last.figures);
    for (const { title } of last.charts) charts.get(title).draw();
    table(last.table);
  };
  const take = (message) => {
    // Another process, or a new one: what was before is none of its history.
    if (last && (message.title !== last.title || message.seconds < last.seconds)) {
      charts.clear();
      by("charts").replaceChildren();
    }
    last = message;
    for (const chart of message.charts) {
      if (!charts.has(chart.title)) charts.set(chart.title, new Chart(chart.title, chart.unit));
      charts.get(chart.title).add(message.seconds, chart);
    }
    // A page that is hidden is not drawn.
    if (!isWaiting) {
      isWaiting = true;
      requestAnimationFrame(show);
    }
  };
  const state = (name, text) => {
    document.body.dataset.state = name;
    write(by("state"), text);
  };
  const connect = () => {
    source = new EventSource("events");
    source.onmessage = (event) => {
      heard = Date.now();
      state("live", "Live");
      take(JSON.parse(event.data));
    };
    source.onerror = () => {
      state("disconnected", "Disconnected: trying again");
      // After a refusal it does not try by itself.
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(connect, 2000);
    };
  };
  setInterval(() => {
    if (document.body.dataset.state === "live" && Date.now() - heard > SILENT) state("disconnected", "No data arrives");
  }, 1000);
  by("pause").addEventListener("click", () => {
    const isPaused = document.body.dataset.state !== "paused";
    clearTimeout(retry);
    if (isPaused) source.close(); else connect();
    state(isPaused ? "paused" : "connecting", isPaused ? "Paused" : "Connecting");
    write(by("pause"), isPaused ? "Resume" : "Pause");
  });
  addEventListener("resize", () => { if (last) show(); });
  connect();
})();
