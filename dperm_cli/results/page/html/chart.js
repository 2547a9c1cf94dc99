// A panel of dperm_cli/results/charts/chart_model.py as SVG: {title, x: {label}, y: {label, scale}, shows_all_lines, curves, lines} with
// curves {label, hue, mark, pattern, points, fit} and lines {kind, xs, ys, hue}; `show` says whether band, floor and bounds are drawn.
// Marks, dashes and fills are that module's.
const MARKS = study.chart.marks;
const hueOf = (look) => `var(--h${look % 8})`;
const dashesOf = (pattern) => (study.chart.dashes[(pattern || 0) % study.chart.dashes.length] || []).map((dash) => 2 * dash).join(" ") || null;
const fillOf = (pattern) => study.chart.fills[((pattern || 0) + Math.floor((pattern || 0) / study.chart.dashes.length)) % study.chart.fills.length];
// The shapes of a mark: its outline and, where only a part of it has the colour, that part.
function markShapes(one, d, hollow, more) {
  const fill = hollow ? "full" : fillOf(one.pattern), part = fill !== "full";
  const shapes = [s("path", { class: "dot" + (hollow || part ? " hollow" : ""), d, hue: one.hue, ...more })];
  return part ? [...shapes, s("path", { class: "part " + fill, d, hue: one.hue, transform: more.transform, "aria-hidden": "true" })] : shapes;
}
const positive = (value) => typeof value === "number" && value > 0 && Number.isFinite(value);
const isLinear = (panel) => panel.y.scale === "linear";
const shows = (panel, y) => (isLinear(panel) ? Number.isFinite(y) : positive(y));
// As the model's Point: rounding errors and what lies under the optimum's gap are not resolved.
const unresolved = (p) => Math.max(p.gap || 0, study.chart.rounding * (p.floor || 0));
const heightOf = (panel, p) => (isLinear(panel) ? p.value : Math.max(p.value, p.gap || 0));
const lowOf = (panel, p) => (isLinear(panel) || p.low > unresolved(p) ? p.low : p.gap || 0);
const deepOf = (panel, p) => (isLinear(panel) || lowOf(panel, p) <= 0 ? lowOf(panel, p) : Math.max(lowOf(panel, p), heightOf(panel, p) / study.chart.depth));
const isShown = (panel, p) => shows(panel, heightOf(panel, p)) && (isLinear(panel) || heightOf(panel, p) > study.chart.rounding * (p.floor || 0));
const linesOf = (panel) => panel.lines.filter((line) => (line.kind === "floor" ? panel.show.floor : panel.show.bounds));

function logTicks(low, high, most) {
  const found = [], from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  for (let e = from; e <= to; e++) for (const m of [1, 2, 5]) found.push([m, e, Number(`${m}e${e}`)]);
  const inside = found.filter(([, , v]) => v >= low * 0.999999 && v <= high * 1.000001);
  const thin = (keep) => inside.filter(([m, e]) => keep(m, e)).map(([, , v]) => v);
  const levels = [thin(() => true), thin((m) => m === 1)];
  for (let every = 2; every < 40; every++) levels.push(thin((m, e) => m === 1 && e % every === 0));
  return levels.find((values) => values.length <= most) || [];
}

function linearTicks(low, high, most) {
  const rough = (high - low) / most, size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((m) => m * size >= rough);
  return Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, i) => (Math.ceil(low / step) + i) * step);
}

// As the model's Panel.limits, of what is shown.
function limits(panel) {
  const points = panel.curves.flatMap((one) => one.points).filter((p) => isShown(panel, p));
  const heights = points.flatMap((p) => [heightOf(panel, p), ...(panel.show.band ? [deepOf(panel, p), p.high] : [])]);
  const lines = linesOf(panel), ys = (floor) => lines.filter((line) => (line.kind === "floor") === floor).flatMap((line) => line.ys);
  const seen = [...heights, ...ys(true)].filter((y) => shows(panel, y));
  if (!seen.length) return null;
  const low = Math.min(...seen), high = Math.max(...seen), reach = isLinear(panel) || panel.shows_all_lines ? Infinity : study.chart.reach;
  const near = ys(false).filter((y) => reach === Infinity || (y >= low / reach && y <= high * reach));
  const ends = [Math.min(low, ...near), Math.max(high, ...near)], margin = 0.05 * (ends[1] - ends[0]) || 0.5;
  return isLinear(panel) ? [ends[0] - margin, ends[1] + margin] : [ends[0] / study.chart.room, ends[1] * study.chart.room];
}

function scales(panel, width, height) {
  const pad = { left: 70, right: 18, top: 14, bottom: 46 };
  const ys = limits(panel), t = isLinear(panel) ? (v) => v : Math.log;
  const xs = distinct(panel.curves.flatMap((one) => one.points.map((p) => p.x))).filter(positive).sort((a, b) => a - b);
  if (!ys || !xs.length) return null;
  const single = xs.length === 1;
  const span = single ? 1 : Math.log(xs[xs.length - 1] / xs[0]);
  const inner = { w: width - pad.left - pad.right, h: height - pad.top - pad.bottom };
  const x = (v, i) => single
    ? pad.left + inner.w / 2 + (i - (panel.curves.length - 1) / 2) * Math.min(64, inner.w / panel.curves.length)
    : pad.left + inner.w * (0.045 + 0.91 * Math.log(v / xs[0]) / span);
  const y = (v) => pad.top + inner.h * (1 - (t(v) - t(ys[0])) / (t(ys[1]) - t(ys[0])));
  return { pad, inner, xs, ys, single, x, y };
}

function drawAxes(panel, at, width, height) {
  const { pad, inner } = at, layer = s("g", { "aria-hidden": "true" });
  for (const v of (isLinear(panel) ? linearTicks : logTicks)(at.ys[0], at.ys[1], Math.max(3, Math.floor(inner.h / 34)))) {
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
    s("text", { class: "label", x: pad.left + inner.w / 2, y: height - 8, "text-anchor": "middle" }, panel.x.label),
    s("text", { class: "label", x: 13, y: pad.top + inner.h / 2, "text-anchor": "middle", transform: `rotate(-90 13 ${pad.top + inner.h / 2})` }, panel.y.label));
  return layer;
}

const tooClose = (xs, at) => xs.some((v, i) => i && at.x(v, 0) - at.x(xs[i - 1], 0) < 34);
const path = (points) => points.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");

function drawBand(panel, one, i, at) {
  const kept = one.points.filter((p) => p.trials > 1 && isShown(panel, p) && shows(panel, p.high));
  if (!kept.length) return null;
  const low = (p) => (shows(panel, lowOf(panel, p)) ? lowOf(panel, p) : at.ys[0]);
  const up = kept.map((p) => [at.x(p.x, i), at.y(p.high)]), down = kept.map((p) => [at.x(p.x, i), at.y(low(p))]).reverse();
  if (kept.length === 1) {
    up.unshift([up[0][0] - 4, up[0][1]]); up[1][0] += 4;
    down.unshift([down[0][0] + 4, down[0][1]]); down[1][0] -= 4;
  }
  return s("path", { class: "band", d: path([...up, ...down]) + "Z", hue: one.hue });
}

function lineOf(kind, d, hue = "var(--ink)") {
  const { width, dashes } = study.chart.lines[kind];
  return s("path", { class: "ref " + kind.replace("_", " "), d, hue, "stroke-width": 1.4 * width, "stroke-dasharray": dashes.map((dash) => 1.4 * width * dash).join(" ") || null });
}

function drawLine(line, at, width) {
  let places = line.xs.map((x, j) => [at.x(x, 0), at.y(line.ys[j])]);
  if (at.single) places = [[at.pad.left, places[0][1]], [width - at.pad.right, places[0][1]]];
  else if (places.length === 1) places = [[places[0][0] - 9, places[0][1]], [places[0][0] + 9, places[0][1]]];
  return lineOf(line.kind, path(places), line.hue);
}

function describe(panel, one, p) {
  const band = p.trials > 1 && p.low !== null ? `, ${study.chart.band} ${number(p.low, 3)} to ${number(p.high, 3)}` : "";
  return `${one.label}, ${panel.x.label} ${number(p.x)}: ${number(p.value)}${band}${p.saturated ? ", saturated" : ""}`;
}

// The chart so many pixels wide, with its points; null where nothing can be drawn.
function makeChart(panel, width) {
  const height = Math.round(Math.min(470, Math.max(310, width * 0.46))), at = scales(panel, width, height);
  if (!at) return null;
  const plot = s("g", { "clip-path": "url(#plot)" }, linesOf(panel).map((line) => drawLine(line, at, width))), dots = [];
  if (panel.show.band) plot.append(...panel.curves.map((one, i) => drawBand(panel, one, i, at)).filter(Boolean));
  panel.curves.forEach((one, i) => {
    const kept = one.points.filter((p) => isShown(panel, p) && positive(p.x)).map((p) => ({ p, cx: at.x(p.x, i), cy: at.y(heightOf(panel, p)) }));
    plot.append(s("path", { class: "curve", "stroke-dasharray": dashesOf(one.pattern), d: path(kept.map(({ cx, cy }) => [cx, cy])), hue: one.hue }));
    kept.forEach(({ p, cx, cy }, j) => {
      const shapes = markShapes(one, MARKS[p.gap > 0 && p.gap >= p.value ? 4 : one.mark], p.saturated,
        { tabindex: "-1", role: "button", transform: `translate(${cx.toFixed(1)} ${cy.toFixed(1)})`, "aria-label": describe(panel, one, p) });
      dots.push({ dot: shapes[0], shapes, one, p, cx, cy, i, j });
    });
  });
  const box = { x: at.pad.left, y: at.pad.top, width: at.inner.w, height: at.inner.h };
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `${panel.y.label} against ${panel.x.label}; arrow keys move between points` },
    s("defs", {}, s("clipPath", { id: "plot" }, s("rect", box))), drawAxes(panel, at, width, height), plot, s("g", {}, dots.flatMap((d) => d.shapes)));
  return { svg, dots, height };
}

function drawChart(host, panel, events) {
  const width = Math.max(280, host.clientWidth || 800), made = makeChart(panel, width);
  if (!made) { host.replaceChildren(h("p", { class: "sub" }, "Nothing to draw at this setting.")); return; }
  wire(made.svg, made.dots, width, events);
  host.replaceChildren(made.svg);
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

// A short piece of line (and marker) for legends, 34 by 14.
function swatch(kind, one = {}) {
  if (kind === "curve") {
    return [s("path", { class: "curve", "stroke-dasharray": dashesOf(one.pattern), d: "M1 7H33", hue: one.hue }),
      ...markShapes(one, MARKS[one.mark], false, { transform: "translate(17 7)" })];
  }
  if (kind === "band") return [s("rect", { class: "band", x: 1, y: 2, width: 32, height: 10, hue: "var(--ink)" })];
  if (kind === "hollow") return [s("path", { class: "dot hollow", d: MARKS[0], transform: "translate(17 7)", hue: "var(--ink)" })];
  return [lineOf(kind, "M1 7H33")];
}

const sample = (kind, one) => s("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" }, swatch(kind, one));
