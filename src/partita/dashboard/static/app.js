// Freshness, pause, lost servers, the brush and the lag curve. Everything else on the pages works without this file.
"use strict";
(() => {
  document.documentElement.classList.add("js");
  const fresh = () => document.getElementById("fresh");
  let paused = false, lost = false, skew = null;

  function stamp() {
    const element = document.getElementById("stamp");
    return element ? Number(element.dataset.seenMs) : 0;
  }
  function took(seen) {  // The server's clock and this one may differ; the fastest arrival tells by how much.
    const apart = Date.now() - seen;
    if (seen && (skew === null || apart < skew)) skew = apart;
  }
  function words(ms) {
    if (ms < 10000) return (Math.max(0, ms) / 1000).toFixed(1) + " s";
    if (ms < 60000) return Math.round(ms / 1000) + " s";
    if (ms < 3600000) return Math.floor(ms / 60000) + " min";
    return Math.floor(ms / 3600000) + " h " + Math.floor(ms % 3600000 / 60000) + " min";
  }
  function tick() {
    const seen = stamp(), label = fresh();
    if (!label) return;
    const age = seen ? Date.now() - seen - (skew || 0) : 0;
    const text = lost ? "server lost, trying again" : paused ? "paused" : !seen ? "first look" : "updated " + words(age) + " ago";
    if (label.textContent !== text) label.textContent = text;
    label.className = lost ? "bad" : age > 30000 ? "warn" : "";
  }
  setInterval(tick, 500);

  document.addEventListener("click", (event) => {
    if (event.target.id !== "pause") return;
    paused = !paused;
    event.target.setAttribute("aria-pressed", String(paused));
    event.target.textContent = paused ? "Resume" : "Pause";
    tick();
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form.filter");
    if (form && event.target.tagName === "SELECT") form.requestSubmit();
  });
  document.addEventListener("htmx:sse:before:message", (event) => {
    lost = false;
    if (paused) event.preventDefault();
  });
  document.addEventListener("htmx:sse:after:message", () => { took(stamp()); draw(); tick(); });
  document.addEventListener("htmx:sse:error", () => { lost = true; tick(); });
  document.addEventListener("htmx:sse:after:connection", () => { lost = false; tick(); });

  // Brush on the timeline: drag over a stretch of time to see only that.
  let brush = null;
  function timeAt(svg, clientX) {
    const box = svg.getBoundingClientRect(), data = svg.dataset;
    const left = Number(data.left), right = Number(data.right);
    const share = ((clientX - box.left) / box.width - left) / (right - left);
    return Number(data.from) + Math.min(1, Math.max(0, share)) * (Number(data.to) - Number(data.from));
  }
  document.addEventListener("pointerdown", (event) => {
    const svg = event.target.closest("svg.timeline");
    if (!svg || event.button || event.pointerType === "touch" || event.target.closest("a")) return;
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("class", "brush");
    svg.append(rect);
    brush = { svg, rect, from: event.clientX };
    event.preventDefault();
  });
  document.addEventListener("pointermove", (event) => {
    if (!brush) return;
    const box = brush.svg.getBoundingClientRect(), scale = brush.svg.viewBox.baseVal.width / box.width;
    brush.rect.setAttribute("x", (Math.min(brush.from, event.clientX) - box.left) * scale);
    brush.rect.setAttribute("width", Math.abs(event.clientX - brush.from) * scale);
    brush.rect.setAttribute("height", brush.svg.viewBox.baseVal.height);
  });
  document.addEventListener("pointerup", (event) => {
    if (!brush) return;
    const { svg, rect, from } = brush;
    brush = null;
    rect.remove();
    if (Math.abs(event.clientX - from) < 8) return;
    const times = [timeAt(svg, from), timeAt(svg, event.clientX)].sort((a, b) => a - b).map(Math.round);
    const query = new URLSearchParams(location.search);
    query.set("from", times[0]);
    query.set("to", times[1]);
    location.search = query;
  });

  let plot = null, host = null;
  function colour(name) {  // A canvas knows neither variables nor themes; an element resolves both.
    const probe = document.createElement("i");
    probe.style.color = "var(" + name + ")";
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }
  function clock(seconds) { return new Date(seconds * 1000).toISOString().slice(11, 19); }
  function newest(u) {  // without a pointer over it the legend has the newest values
    if (u.cursor.idx == null) u.setLegend({ idx: u.data[0].length - 1 }, false);
  }
  function marks(u) {
    const told = JSON.parse(document.getElementById("lag-points").textContent).marks;
    u.ctx.save();
    u.ctx.strokeStyle = colour("--warn");
    u.ctx.setLineDash([3, 3]);
    for (const [at] of told) {
      const x = Math.round(u.valToPos(at / 1000, "x", true));
      if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
      u.ctx.beginPath();
      u.ctx.moveTo(x, u.bbox.top);
      u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
      u.ctx.stroke();
    }
    u.ctx.restore();
  }
  function draw() {
    const place = document.getElementById("plot"), source = document.getElementById("lag-points");
    if (!place || !source || !window.uPlot) return;
    const points = JSON.parse(source.textContent).lag;
    if (points.length < 2) return;
    const data = [points.map((p) => p[0] / 1000), points.map((p) => p[1])];
    if (plot && host === place && place.firstChild) { plot.setData(data); return; }
    host = place;
    place.replaceChildren();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    plot = new uPlot({
      width: place.clientWidth, height: 190, padding: [8, 34, 0, 0], cursor: { y: false }, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
      hooks: { draw: [marks], ready: [newest], setData: [newest], setCursor: [newest] },
      scales: { y: { range: (u, low, high) => [0, Math.max(4, high * 1.08)] } },
      axes: [{ ...axis, space: 90, size: 28, values: (u, all) => all.map(clock) }, { ...axis, size: 64, values: (u, all) => all.map((v) => v.toLocaleString("en")) }],
      series: [{ label: "time", value: (u, v) => v == null ? "" : clock(v) + " UTC" },
        { label: "lag", stroke: colour("--accent"), width: 2, fill: colour("--tint"), points: { show: false },
          value: (u, v) => v == null ? "" : v.toLocaleString("en") + " records" }],
    }, data, place);
  }
  addEventListener("resize", () => { if (plot && host) plot.setSize({ width: host.clientWidth, height: 190 }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (host) { host.replaceChildren(); draw(); } });
  addEventListener("scroll", ({ target }) => {  // names of rows stay in sight
    const svg = target.querySelector?.(".timeline");
    if (!svg) return;
    const shift = target.scrollLeft * svg.viewBox.baseVal.width / svg.clientWidth;
    svg.querySelector(".names").setAttribute("transform", `translate(${shift})`);
  }, true);
  addEventListener("DOMContentLoaded", () => {
    took(stamp()); draw(); tick();
  });
})();
