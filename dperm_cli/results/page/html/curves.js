// The section with the figure: what is drawn, along which axis, at which setting.
const calibrations = distinct(rows.map((row) => row.calibration).filter(Boolean));
const nameOf = (one) => [one.mechanism, calibrations.length > 1 && one.calibration, one.variant].filter(Boolean).join(", ");
const heldText = (key, value) => `${plainKey(key)} ${value === null || value === undefined ? "none" : number(value, 4, Number.isInteger(value))}`;
const axisName = (name) => study.chart.axes[name] || plainKey(name);
const ALL = "*";

// The settings that are held: by key the values still open, and the one chosen. Each choice narrows
// the next, and a key that follows from the earlier ones is no choice.
function settings(candidates, keep) {
  const found = {}, open = [];
  let left = candidates;
  for (const key of distinct(candidates.flatMap((one) => Object.keys(one.held)))) {
    const values = distinct(left.map((one) => one.held[key])).sort((a, b) => a - b);
    const seen = new Set(left.map((one) => JSON.stringify(open.map((name) => one.held[name]))));
    const pairs = new Set(left.map((one) => JSON.stringify([...open, key].map((name) => one.held[name]))));
    if (values.length < 2 || seen.size === pairs.size) continue;
    const texts = values.map(String);
    const chosen = keep[key] === ALL || texts.includes(keep[key]) ? keep[key] : String(usual(key, fullest(key, values, left)));
    found[key] = { values, chosen };
    if (chosen === ALL) open.push(key);
    else left = left.filter((one) => String(one.held[key]) === chosen);
  }
  return found;
}

// Keys that differ and do not follow from the ones before them.
function freeKeys(candidates) {
  const found = [], kinds = (keys) => new Set(candidates.map((one) => JSON.stringify(keys.map((key) => one.held[key])))).size;
  for (const key of distinct(candidates.flatMap((one) => Object.keys(one.held)))) if (kinds([...found, key]) > kinds(found)) found.push(key);
  return found;
}

// The values at which most cells ran.
function fullest(key, values, candidates) {
  const weight = (value) => candidates.filter((one) => one.held[key] === value).reduce((sum, one) => sum + one.rows.flat().length, 0);
  const most = Math.max(...values.map(weight));
  return values.filter((value) => weight(value) === most);
}

function usual(key, values) {
  if (/epsilon$/.test(key)) return values.reduce((a, b) => (Math.abs(Math.log(b)) < Math.abs(Math.log(a)) ? b : a));
  return /seed$/.test(key) ? values[0] : values[Math.floor(values.length / 2)];
}

const held = (one, chosen) => Object.entries(chosen).every(([key, { chosen: value }]) => value === ALL || String(one.held[key]) === value);

function settingFields(found, change, all) {
  return Object.entries(found).map(([key, { values, chosen }]) => {
    const options = values.map((value) => [String(value), value === null ? "none" : number(value, 4, Number.isInteger(value))]);
    if (all) options.push([ALL, "all"]);
    const control = choice(options, chosen, (value) => change(key, value));
    control.dataset.held = key;
    return field(plainKey(key), control);
  });
}

function curvesSection() {
  const isDrawn = (problem) => study.axes.some((axis) => axis.curves.some((one) => one.problem === problem));
  const own = study.figures.map((one, i) => ["f" + i, one.title]), free = study.problems.map((title, i) => ["p" + i, title]).filter((_, i) => isDrawn(i));
  const sources = [...own, ...free].map(([value]) => value), first = { source: sources[0], axis: study.axes.length ? study.axes[0].name : "" };
  const state = { ...first, keep: {}, hidden: new Set(), band: true, floor: true, bounds: true };
  const controls = h("div", { class: "controls" }), host = h("div"), tip = h("div", { class: "tip", role: "status", hidden: true });
  const legend = h("ul", { class: "legend", "aria-label": "Curves; press to hide or show" }), key = h("div", { class: "key" });
  const caption = h("p", { class: "caption" }), pinned = h("div", { id: "pinned", "aria-live": "polite" });
  const figure = h("div", { class: "figure" }, host, tip);
  const about = h("p", { class: "sub" });
  let current = null, seen = null;  // the panel at this setting, and what of it is not hidden

  const repeated = (panel) => panel.curves.some((one) => one.points.some((p) => p.trials > 1));
  const spent = (panel) => panel.curves.some((one) => one.points.some((p) => p.rows.some((place) => rows[place].noise === "secure")));
  const overTrials = (panel) => spent(panel)
    ? "Every trial with noise=secure is a release and spent; no guarantee covers points and bands over trials."
    : "Points and bands over trials are a simulation on the same data, not a release.";
  const isFigure = () => state.source[0] === "f";
  const figureAt = () => study.figures[Number(state.source.slice(1))];
  const axisAt = () => study.axes.find((one) => one.name === state.axis);
  const inProblem = (one) => one.problem === Number(state.source.slice(1));
  const usable = () => study.axes.filter((axis) => axis.curves.some(inProblem));

  function ownPanel() {
    const found = figureAt(), shown = risk.each && found.each ? found.each : found;
    const hued = (one) => ({ ...one, hue: hueOf(one.look) });
    return {
      ...shown, axis: found.axis, title: found.title, lines: shown.lines.map(hued),
      note: shown.curves.some((one) => one.points.some((p) => p.trials > 1)) ? `Points: the ${found.statistic} over trials.` : "",
      curves: shown.curves.map((one) => ({ ...hued(one), label: one.label || "all" })),
    };
  }

  function freePanel() {
    const candidates = axisAt().curves.filter(inProblem), chosen = settings(candidates, state.keep);
    const shown = candidates.filter((one) => held(one, chosen));
    const open = Object.keys(chosen).filter((name) => chosen[name].chosen === ALL);
    const curves = shown.map((one, i) => ({
      label: [nameOf(one), ...open.map((name) => heldText(name, one.held[name]))].join(", "),
      hue: hueOf(one.look), mark: open.length ? i % MARKS.length : one.mark, pattern: one.pattern,
      fit: risk.each ? one.fit_each : one.fit,
      points: one.rows.map((at, j) => ({ x: one.x[j], ...riskOf(rows[at], risk.each), rows: [at] })),
    }));
    const moves = distinct(shown.flatMap((one) => one.moves));
    return {
      axis: state.axis, x: { label: axisName(state.axis) }, y: { label: study.chart.risk[Number(risk.each)], scale: "log" },
      title: study.problems[Number(state.source.slice(1))], chosen, curves,
      note: moves.length ? `Along the axis ${moves.map(plainKey).join(", ")} ${moves.length > 1 ? "change" : "changes"} as well.` : "",
    };
  }

  // The lines of cells, one for each theorem and value: in a curve's colour where they are not those of all colours.
  function linesOfCells(curves) {
    const every = distinct(curves.map((one) => one.hue)).length;
    return Object.entries({ floor: "floor", bound_upper: "upper", bound_lower: "lower" }).flatMap(([kind, name]) => {
      const found = new Map(), theorem = (p) => rows[p.rows[0]][`${kind}_id`];
      for (const one of curves) {
        for (const id of distinct(one.points.map(theorem))) {
          const kept = one.points.filter((p) => positive(p[name]) && theorem(p) === id), xs = kept.map((p) => p.x), ys = kept.map((p) => p[name]);
          const line = found.get(JSON.stringify([xs, ys])) || { kind, xs, ys, hues: new Set() };
          if (kept.length) found.set(JSON.stringify([xs, ys]), line);
          line.hues.add(one.hue);
        }
      }
      return [...found.values()].map(({ hues, ...line }) => ({ ...line, hue: hues.size === 1 && every > 1 && kind !== "floor" ? [...hues][0] : "var(--ink)" }));
    });
  }

  function drawControls(panel) {
    const select = choice([], "", (value) => { state.source = value; state.hidden.clear(); draw(); });
    const group = (label, options) => options.length && select.append(h("optgroup", { label }, options.map(([value, text]) =>
      h("option", { value, selected: value === state.source }, text))));
    group("Figures of the experiment", own);
    group(own.length ? "All cells, by problem" : "Problems", free);
    select.id = "source";
    const parts = [field(own.length ? "figure" : "problem", select, true)];
    if (!isFigure()) {
      const axis = choice(usable().map((one) => [one.name, axisName(one.name)]), state.axis, (value) => { state.axis = value; state.hidden.clear(); draw(); });
      axis.id = "axis";
      parts.push(field("horizontal axis", axis), ...settingFields(panel.chosen, (name, value) => { state.keep[name] = value; state.hidden.clear(); draw(); }, true));
    }
    if (!isFigure() || figureAt().each) parts.push(riskSwitch());
    const had = document.activeElement && controls.contains(document.activeElement) ? document.activeElement.id : null;
    const before = had && document.getElementById(had), at = before && [...controls.querySelectorAll("select")].indexOf(before);
    controls.replaceChildren(...parts);
    if (at !== null && at >= 0) { const again = controls.querySelectorAll("select")[at]; if (again) again.focus(); }
  }

  function drawLegend(panel) {
    legend.replaceChildren(...panel.curves.map((one) => h("li", {}, h("button", {
      type: "button", "aria-pressed": String(!state.hidden.has(one.label)),
      onclick: (event) => {
        if (!state.hidden.delete(one.label)) state.hidden.add(one.label);
        event.currentTarget.setAttribute("aria-pressed", String(!state.hidden.has(one.label)));
        plot();
      },
    }, sample("curve", one), h("span", {}, one.label, h("span", { class: "slope" }, slopeWords(one)))))));
  }

  const slopeWords = (one) => (one.fit && one.fit.slope !== null ? ` slope ${one.fit.slope.toFixed(2).replace("-", "−")} ± ${one.fit.half.toFixed(2)}` : "");

  // What bands, hollow points and reference lines mean, as [kind, words].
  function keyOf(panel) {
    const points = panel.curves.flatMap((one) => one.points), range = limits(panel), lines = linesOf(panel);
    const named = !isFigure() || figureAt().quantity.startsWith("excess_risk");  // rows name the theorems of bounds on these
    const ids = (kind) => distinct(points.flatMap((p) => p.rows.map((at) => rows[at][`${kind}_id`]))).filter(Boolean).join("; ");
    const off = (ys) => (!range ? "" : Math.min(...ys) > range[1] ? "(above the axis)" : Math.max(...ys) < range[0] ? "(below the axis)" : "");
    const words = (kind) => [study.chart.lines[kind].words + (kind.endsWith("lower") ? ", worst data set" : ""), named && ids(kind),
      off(lines.filter((line) => line.kind === kind).flatMap((line) => line.ys))].filter(Boolean).join(" ");
    return [
      panel.show.band && repeated(panel) && ["band", `${study.chart.band} over trials`],
      points.some((p) => p.saturated) && ["hollow", `hollow: ${study.chart.saturated} (saturated, not fitted)`],
      ...distinct(lines.map((line) => line.kind)).map((kind) => [kind, words(kind)]),
    ].filter(Boolean);
  }

  const events = {
    show(d, width) {
      tip.replaceChildren(...pointFacts(current, d, true));
      tip.hidden = false;
      const k = host.clientWidth / width, x = d.cx * k, y = d.cy * k, box = tip.getBoundingClientRect();
      const right = x + 18 + box.width <= host.clientWidth, left = x - 18 - box.width >= 0;
      const beside = right || left;
      const top = beside ? Math.min(y - 12, host.clientHeight - box.height) : y + 20;
      tip.style.left = `${right ? x + 18 : left ? x - 18 - box.width : Math.max(0, (host.clientWidth - box.width) / 2)}px`;
      tip.style.top = `${Math.max(0, top)}px`;
    },
    hide() { tip.hidden = true; },
    pin(d) {
      pinned.className = "pinned";
      pinned.replaceChildren(h("header", {}, h("h3", {}, "Where this point comes from"),
        h("button", { type: "button", onclick: () => { pinned.className = ""; pinned.replaceChildren(); } }, "Close")), ...pointFacts(current, d, false));
    },
  };

  let width = 0;
  function plot() {
    width = host.clientWidth;
    const curves = current.curves.filter((one) => !state.hidden.has(one.label)), looks = curves.map((one) => one.look);
    const lines = isFigure() ? current.lines.filter((line) => looks.includes(line.look)) : linesOfCells(curves);
    seen = { ...current, curves, lines, show: state };
    tip.hidden = true;
    drawChart(host, seen, events);
    key.replaceChildren(...keyOf(seen).map(([kind, words]) => h("span", {}, sample(kind), words)));
    view.changed();
  }

  function draw() {
    if (!isFigure() && !usable().some((one) => one.name === state.axis) && usable().length) state.axis = usable()[0].name;
    current = isFigure() ? ownPanel() : freePanel();
    state.hidden = new Set(current.curves.map((one) => one.label).filter((label) => state.hidden.has(label)));
    drawControls(current);
    drawLegend(current);
    plot();
    const words = /risk/.test(current.y.label) ? "Excess risk above the certified optimum" : current.y.label[0].toUpperCase() + current.y.label.slice(1);
    about.textContent = words + (isLinear(current) ? "" : ", on logarithmic axes") + ". Hover, or focus a point and use the arrow keys.";
    caption.textContent = [`${current.title}.`, current.note, repeated(current) && overTrials(current), "Click a point to keep its provenance."].filter(Boolean).join(" ");
  }

  function save() {
    const names = ["curve", "axis", "x", "quantity", "value", "q05", "q95", "trials", "floor", "bound_upper", "bound_lower", "saturated", "slope", "slope_error", "cells"];
    const quantity = isFigure() ? figureAt().quantity + (risk.each && figureAt().each ? "_per_record" : "") : risk.each ? "excess_risk_per_record" : "excess_risk";
    const lines = current.curves.filter((one) => !state.hidden.has(one.label)).flatMap((one) => one.points.map((p) => [
      one.label, current.axis, exact(p.x), quantity, exact(p.value), exact(p.low), exact(p.high), exact(p.trials, "int"), exact(p.floor), exact(p.upper), exact(p.lower),
      exact(p.saturated), exact(one.fit && one.fit.slope), exact(one.fit && one.fit.half), p.rows.map((at) => rows[at].cell).join(" "),
    ]));
    download(fileName("csv", "figure", current.axis), csvOf(names, lines));
  }

  // The figure as one sees it, with what the controls say, for a file.
  function pictureOf() {
    const settled = Object.entries(current.chosen || {}).filter(([, { chosen }]) => chosen !== ALL)
      .map(([name, { values, chosen }]) => heldText(name, values.find((value) => String(value) === chosen)));
    return makePicture(seen, {
      width: Math.max(280, host.clientWidth), title: current.title, settings: settled.join(", "),
      legend: [...seen.curves.map((one) => [swatch("curve", one), one.label + slopeWords(one)]), ...keyOf(seen).map(([kind, words]) => [swatch(kind), words])],
      caption: [current.note, repeated(seen) && overTrials(seen)].filter(Boolean).join(" "),
    });
  }

  const toggles = Object.entries({ band: "band", floor: "floor", bounds: "explicit bounds" })
    .map(([name, label]) => [name, check(label, state[name], (on) => { state[name] = on; plot(); })]);
  view.add({
    read: () => [
      state.source !== first.source && ["figure", state.source], !isFigure() && state.axis !== first.axis && ["axis", state.axis],
      ...heldEntries("hold.", state.keep), ...[...state.hidden].map((label) => ["hide", label]), ...toggles.filter(([name]) => !state[name]).map(([name]) => ["without", name]),
    ].filter(Boolean),
    show(asked) {
      state.source = known(asked.get("figure"), sources, first.source);
      state.axis = known(asked.get("axis"), study.axes.map((one) => one.name), first.axis);
      state.keep = heldOf("hold.", asked, study.axes.flatMap((one) => one.curves));
      state.hidden = new Set(asked.getAll("hide"));
      toggles.forEach(([name, label]) => { state[name] = label.querySelector("input").checked = !asked.getAll("without").includes(name); });
      draw();
    },
  });
  const button = (id, text, onclick) => h("button", { type: "button", id, onclick }, text);
  const paper = study.caption.length ? h("details", { class: "caption", id: "figure-caption" }, h("summary", {}, "Caption of the study's figure"), study.caption.map((text) => h("p", {}, text))) : null;
  const element = h("section", { id: "curves" }, h("h2", {}, "Curves"),
    about, controls,
    h("div", { class: "card figure-card" }, figure, legend, key, caption, paper, pinned,
      h("div", { class: "below" }, toggles.map(([, label]) => label), h("div", { class: "push buttons" },
        button("save-svg", "Download SVG", () => saveSvg(fileName("svg", "figure", current.axis), pictureOf())),
        button("save-png", "Download PNG", () => savePng(fileName("png", "figure", current.axis), pictureOf())),
        button("save-figure", "Download data (CSV)", save)))));
  risk.watch(() => draw());
  new ResizeObserver(() => { if (current && host.clientWidth !== width) plot(); }).observe(host);
  return { element, draw };
}

// The facts of a point: in a tooltip the few that matter, pinned all.
function pointFacts(panel, { one, p }, brief) {
  const first = p.rows.length ? rows[p.rows[0]] : {};
  const events = releaseOf(first.cell);
  const known = (value) => value !== null && value !== undefined;
  const cells = p.rows.map((at) => rows[at].cell), files = cells.map((cell) => `records/${cell}.parquet`);
  const words = (events || []).map((event) => event.words);
  const facts = [
    [plainKey(panel.axis), number(p.x, 4, Number.isInteger(p.x))],
    [brief ? panel.y.label.replace(/ \(.*/, "") : panel.y.label, number(p.value, 5) + (p.saturated ? " (saturated)" : "")],
    [study.chart.band, p.trials > 1 && known(p.low) ? `${number(p.low)} – ${number(p.high)}, ${plural(p.trials, "trial")}` : plural(p.trials, "trial")],
    ["floor", known(p.floor) ? number(p.floor) : null],
    ["bounds", [p.lower && `lower ${number(p.lower)}`, p.upper && `upper ${number(p.upper)}`].filter(Boolean).join(", ")],
    ["privacy", first.guarantee ? `${first.guarantee}, ${first.relation}` : null],
    ["epsilon", known(first.epsilon_accounted) ? `${number(first.epsilon_accounted, 6)} (nominal ${number(first.epsilon)}), delta ${number(first.delta_accounted, 3)}` : null],
    ["accountant", first.accountant],
  ];
  const few = (list) => list[0] + (list.length > 1 ? ` and ${list.length - 1} more` : "");
  const origin = [
    ["cell", h("code", {}, brief ? few(cells) : cells.join(" "))],
    ["record", h("code", {}, brief ? few(files) : files.join(" "))],
    ["seed, version", `${known(first.seed) ? first.seed : "none (system's generator)"}, dperm ${first.version || "-"}`],
    ["events", words.length ? h("span", {}, brief ? clipped(words.join("; "), 110) : words.map((text) => h("div", {}, text))) : null],
  ];
  const more = brief ? [] : [["optimum gap", p.gap], ["noise", first.noise], ["settings", first.settings], ["overrides", first.overrides], ["data", first.data_fingerprint]]
    .map(([name, value]) => [name, typeof value === "number" ? number(value) : value ? h("code", {}, value) : null]);
  return [h("b", {}, one.label), pairs([...facts, ...origin, ...more])];
}

const clipped = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
