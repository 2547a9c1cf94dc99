// Log-log curves as SVG. A model is {axis, axisLabel, label, series, band, floor, bounds};
// a series {label, hue, mark, dash, points: [{x, value, low, high, floor, upper, lower, ...}]}.
const MARKS = [
  "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0 -8.4 0Z", "M-3.9 -3.9H3.9V3.9H-3.9Z", "M0 -5L4.8 3.7H-4.8Z",
  "M0 -5.2L5.2 0L0 5.2L-5.2 0Z", "M0 5L4.8 -3.7H-4.8Z", "M-1.7 -4.8H1.7V-1.7H4.8V1.7H1.7V4.8H-1.7V1.7H-4.8V-1.7H-1.7Z",
  "M-4.6 -2.6L-2.6 -4.6L0 -2L2.6 -4.6L4.6 -2.6L2 0L4.6 2.6L2.6 4.6L0 2L-2.6 4.6L-4.6 2.6L-2 0Z", "M-5 0L3.7 4.8V-4.8Z",
];
const hueOf = (i) => `var(--h${i % 8})`;
const positive = (value) => typeof value === "number" && value > 0 && Number.isFinite(value);

function logTicks(low, high, most) {
  const found = [], from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  for (let e = from; e <= to; e++) for (const m of [1, 2, 5]) found.push([m, e, Number(`${m}e${e}`)]);
  const inside = found.filter(([, , v]) => v >= low * 0.999999 && v <= high * 1.000001);
  const thin = (keep) => inside.filter(([m, e]) => keep(m, e)).map(([, , v]) => v);
  const levels = [thin(() => true), thin((m) => m === 1)];
  for (let every = 2; every < 40; every++) levels.push(thin((m, e) => m === 1 && e % every === 0));
  return levels.find((values) => values.length <= most) || [];
}

function limits(model) {
  const shown = model.series.flatMap((one) => one.points);
  const heights = shown.flatMap((p) => [p.value, model.band && p.low, model.band && p.high, model.floor && p.floor]).filter(positive);
  if (!heights.length) return null;
  const low = Math.min(...heights), high = Math.max(...heights);
  const others = model.bounds ? shown.flatMap((p) => [p.upper, p.lower]).filter((y) => positive(y) && y >= low / 30 && y <= high * 30) : [];
  return [Math.min(low, ...others) / 1.5, Math.max(high, ...others) * 1.5];
}

function scales(model, width, height) {
  const pad = { left: 62, right: 18, top: 14, bottom: 46 };
  const ys = limits(model);
  const xs = distinct(model.series.flatMap((one) => one.points.map((p) => p.x))).filter(positive).sort((a, b) => a - b);
  if (!ys || !xs.length) return null;
  const single = xs.length === 1;
  const span = single ? 1 : Math.log(xs[xs.length - 1] / xs[0]);
  const inner = { w: width - pad.left - pad.right, h: height - pad.top - pad.bottom };
  const x = (v, i) => single
    ? pad.left + inner.w / 2 + (i - (model.series.length - 1) / 2) * Math.min(64, inner.w / model.series.length)
    : pad.left + inner.w * (0.04 + 0.92 * Math.log(v / xs[0]) / span);
  const y = (v) => pad.top + inner.h * (1 - Math.log(v / ys[0]) / Math.log(ys[1] / ys[0]));
  return { pad, inner, xs, ys, single, x, y };
}

function drawAxes(model, at, width, height) {
  const { pad, inner } = at, layer = s("g", { "aria-hidden": "true" });
  for (const v of logTicks(at.ys[0], at.ys[1], Math.max(3, Math.floor(inner.h / 34)))) {
    layer.append(s("line", { class: "grid", x1: pad.left, x2: width - pad.right, y1: at.y(v), y2: at.y(v) }),
      s("text", { x: pad.left - 8, y: at.y(v) + 4, "text-anchor": "end" }, number(v, 3)));
  }
  let ticks = at.xs;
  const room = Math.floor(inner.w / 46);
  if (!at.single && (ticks.length > Math.min(10, room) || tooClose(ticks, at))) ticks = logTicks(at.xs[0], at.xs[at.xs.length - 1], room);
  for (const v of ticks) {
    const across = at.single ? pad.left + inner.w / 2 : at.x(v, 0);
    if (!at.single) layer.append(s("line", { class: "grid", x1: across, x2: across, y1: pad.top, y2: height - pad.bottom }));
    layer.append(s("text", { x: across, y: height - pad.bottom + 18, "text-anchor": "middle" }, number(v, 3, Number.isInteger(v))));
  }
  layer.append(
    s("line", { class: "frame", x1: pad.left, x2: width - pad.right, y1: height - pad.bottom, y2: height - pad.bottom }),
    s("text", { class: "label", x: pad.left + inner.w / 2, y: height - 8, "text-anchor": "middle" }, model.axisLabel),
    s("text", { class: "label", x: 13, y: pad.top + inner.h / 2, "text-anchor": "middle", transform: `rotate(-90 13 ${pad.top + inner.h / 2})` }, model.label));
  return layer;
}

const tooClose = (xs, at) => xs.some((v, i) => i && at.x(v, 0) - at.x(xs[i - 1], 0) < 34);
const path = (points) => points.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");

function drawBand(one, i, at) {
  const kept = one.points.filter((p) => positive(p.low) && positive(p.high) && p.trials > 1);
  if (!kept.length) return null;
  const up = kept.map((p) => [at.x(p.x, i), at.y(p.high)]), down = kept.map((p) => [at.x(p.x, i), at.y(p.low)]).reverse();
  if (kept.length === 1) {
    up.unshift([up[0][0] - 4, up[0][1]]); up[1][0] += 4;
    down.unshift([down[0][0] + 4, down[0][1]]); down[1][0] -= 4;
  }
  return s("path", { class: "band", d: path([...up, ...down]) + "Z", hue: one.hue });
}

// Reference lines of all series: each different line once, in its curve's colour where several differ.
function references(model, kind) {
  const found = new Map();
  for (const one of model.series) {
    const line = one.points.filter((p) => positive(p[kind])).map((p) => [p.x, p[kind]]);
    const key = JSON.stringify(line);
    if (line.length && !found.has(key)) found.set(key, { line, hue: one.hue });
  }
  return [...found.values()];
}

function drawReference(kind, { line, hue }, several, at, width) {
  let places = line.map(([x, y]) => [at.x(x, 0), at.y(y)]);
  if (places.length === 1) places = [[at.pad.left, places[0][1]], [width - at.pad.right, places[0][1]]];
  return s("path", { class: "ref " + kind, d: path(places), hue: several && kind !== "floor" ? hue : "var(--ink)" });
}

function describe(model, one, p) {
  const band = p.trials > 1 && p.low !== null ? `, 5 to 95 percent ${number(p.low, 3)} to ${number(p.high, 3)}` : "";
  return `${one.label}, ${model.axis} ${number(p.x)}: ${number(p.value)}${band}${p.saturated ? ", saturated" : ""}`;
}

function drawChart(host, model, events) {
  const width = Math.max(280, host.clientWidth || 800), height = Math.round(Math.min(470, Math.max(310, width * 0.46)));
  const at = scales(model, width, height);
  if (!at) { host.replaceChildren(h("p", { class: "sub" }, "Nothing to draw at this setting.")); return; }
  const plot = s("g", { "clip-path": "url(#plot)" }), dots = [];
  for (const kind of ["floor", "upper", "lower"]) {
    if (kind === "floor" ? !model.floor : !model.bounds) continue;
    const lines = references(model, kind);
    lines.forEach((line) => plot.append(drawReference(kind, line, lines.length > 1, at, width)));
  }
  if (model.band) model.series.forEach((one, i) => { const band = drawBand(one, i, at); if (band) plot.append(band); });
  model.series.forEach((one, i) => {
    const kept = one.points.filter((p) => positive(p.value) && positive(p.x));
    plot.append(s("path", { class: "curve" + (one.dash ? " dash" : ""), d: path(kept.map((p) => [at.x(p.x, i), at.y(p.value)])), hue: one.hue }));
    kept.forEach((p, j) => {
      const cx = at.x(p.x, i), cy = at.y(p.value);
      const dot = s("path", { class: "dot" + (p.saturated ? " hollow" : ""), d: MARKS[one.mark % MARKS.length], tabindex: "-1", role: "button",
        transform: `translate(${cx.toFixed(1)} ${cy.toFixed(1)})`, hue: one.hue, "aria-label": describe(model, one, p) });
      dots.push({ dot, one, p, cx, cy, i, j });
    });
  });
  const box = { x: at.pad.left, y: at.pad.top, width: at.inner.w, height: at.inner.h };
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `${model.label} against ${model.axis}, log-log; arrow keys move between points` },
    s("defs", {}, s("clipPath", { id: "plot" }, s("rect", box))), drawAxes(model, at, width, height), plot, s("g", {}, dots.map((d) => d.dot)));
  wire(svg, dots, width, events);
  host.replaceChildren(svg);
}

function wire(svg, dots, width, events) {
  if (dots.length) dots[0].dot.setAttribute("tabindex", "0");
  const show = (d) => { dots.forEach((o) => o.dot.classList.toggle("on", o === d)); if (d) events.show(d, width); else events.hide(); };
  const near = (event) => {
    const frame = svg.getBoundingClientRect(), k = width / frame.width;
    const x = (event.clientX - frame.left) * k, y = (event.clientY - frame.top) * k;
    const ranked = dots.map((d) => [Math.hypot(d.cx - x, d.cy - y), d]).sort((a, b) => a[0] - b[0]);
    return ranked.length && ranked[0][0] < 42 ? ranked[0][1] : null;
  };
  svg.addEventListener("pointermove", (event) => show(near(event)));
  svg.addEventListener("pointerleave", () => show(null));
  svg.addEventListener("click", (event) => { const d = near(event); show(d); if (d) events.pin(d); });
  for (const d of dots) {
    d.dot.addEventListener("focus", () => show(d));
    d.dot.addEventListener("blur", () => show(null));
    d.dot.addEventListener("keydown", (event) => {
      const next = neighbour(dots, d, event.key);
      if (next) { d.dot.setAttribute("tabindex", "-1"); next.dot.setAttribute("tabindex", "0"); next.dot.focus(); event.preventDefault(); }
      if (event.key === "Enter" || event.key === " ") { events.pin(d); event.preventDefault(); }
      if (event.key === "Escape") show(null);
    });
  }
}

function neighbour(dots, d, key) {
  const along = { ArrowLeft: -1, ArrowRight: 1 }[key], across = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (along) return dots.find((o) => o.i === d.i && o.j === d.j + along);
  if (!across) return null;
  const others = distinct(dots.map((o) => o.i)), next = others[(others.indexOf(d.i) + across + others.length) % others.length];
  return dots.filter((o) => o.i === next).sort((a, b) => Math.abs(a.cx - d.cx) - Math.abs(b.cx - d.cx))[0];
}

// A short piece of line (and marker) for legends.
function sample(kind, one = {}) {
  const svg = s("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" });
  if (kind === "curve") {
    svg.append(s("path", { class: "curve" + (one.dash ? " dash" : ""), d: "M1 7H33", hue: one.hue }),
      s("path", { class: "dot", d: MARKS[one.mark % MARKS.length], transform: "translate(17 7)", hue: one.hue }));
  } else if (kind === "band") svg.append(s("rect", { class: "band", x: 1, y: 2, width: 32, height: 10, hue: "var(--ink)" }));
  else if (kind === "hollow") svg.append(s("path", { class: "dot hollow", d: MARKS[0], transform: "translate(17 7)", hue: "var(--ink)" }));
  else svg.append(s("path", { class: "ref " + kind, d: "M1 7H33", hue: "var(--ink)" }));
  return svg;
}
