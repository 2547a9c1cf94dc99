// Everything that is not the figure: table, ranking, slopes, claims, ledger, provenance.
const releases = study.ledger ? unpack(study.ledger.releases) : [];
const releaseByCell = new Map(releases.map((entry) => [entry.cell, entry]));
const releaseOf = (cell) => (releaseByCell.has(cell) ? releaseByCell.get(cell).events : null);

function section(id, title, sub, ...content) {
  return h("section", { id }, h("h2", {}, title), sub ? h("p", { class: "sub" }, sub) : null, ...content);
}

// Filters above a grid: selects for names, a search box, a count that is read out.
function filters(items, { selects, search, grid: shown, buttons, extra = [] }) {
  const chosen = {}, count = h("span", { role: "status", "aria-live": "polite" });
  const box = h("input", { type: "search", placeholder: "any words", oninput: () => refresh() });
  const controls = selects.map(([key, label]) => {
    const values = distinct(items.map((row) => row[key])).filter((value) => value !== null && value !== undefined);
    if (values.length < 2) return null;
    const numeric = values.every((value) => typeof value === "number");
    if (numeric) values.sort((a, b) => a - b);
    const control = choice([["", "all"], ...values.map((value) => [String(value), numeric ? number(value, 4, Number.isInteger(value)) : String(value)])], "", (value) => { chosen[key] = value; refresh(); });
    control.dataset.filter = key;
    return [key, control, field(label, control)];
  }).filter(Boolean);
  function refresh() {
    const words = wordsOf(box.value);
    const kept = items.filter((row) => Object.entries(chosen).every(([key, value]) => value === "" || String(row[key]) === value) && matches(row, words, search));
    count.textContent = kept.length === items.length ? plural(items.length, "row") : `${kept.length} of ${plural(items.length, "row")}`;
    shown.update({ items: kept });
    view.changed();
  }
  view.add({
    read: () => [...Object.entries(chosen), ["text", box.value], ["sort", shown.order()]].filter(([, value]) => value !== "").map(([key, value]) => [`${shown.name}.${key}`, value]),
    show(asked) {
      const found = (key) => asked.get(`${shown.name}.${key}`) || "";
      controls.forEach(([key, control]) => { chosen[key] = control.value = known(found(key), [...control.options].map((one) => one.value), ""); });
      box.value = found("text").slice(0, 1000);
      shown.sortAs(found("sort"));
      refresh();
    },
  });
  const element = h("div", { class: "controls" }, controls.map(([, , one]) => one), field("text", box, true), extra, h("div", { class: "check soft" }, count), h("div", { class: "push" }, buttons));
  return { element, refresh };
}

function tableSection() {
  const names = study.shown, everything = Object.keys(study.columns).filter((name) => name !== "variant");
  const shown = grid({ caption: "Cells of the study", name: "cells", columns: names.map(recordColumn), items: rows, details: rowFacts });
  const save = (columns, ...words) => download(fileName("csv", "cells", ...words), csvOf(columns, shown.sorted().map((row) => columns.map((name) => exact(row[name], columnOf(name).kind)))));
  const widen = (on) => shown.update({ columns: (on ? ["variant", ...everything] : names).map(recordColumn) });
  const all = check("all columns", false, (on) => { widen(on); view.changed(); }), box = all.querySelector("input");
  view.add({
    read: () => (box.checked ? [["cells.columns", "all"]] : []),
    show(asked) { box.checked = asked.get("cells.columns") === "all"; widen(box.checked); },
  });
  const bar = filters(rows, {
    selects: [["mechanism", "mechanism"], ["dataset", "data set"], ["epsilon", "epsilon"], ["calibration", "calibration"], ["status", "status"]],
    search: ["dataset", "mechanism", "variant", "calibration", "loss", "constraint", "guarantee", "relation", "accountant", "status", "reason", "cell", "overrides", "settings"],
    grid: shown, extra: [all],
    buttons: h("div", { class: "buttons" }, h("button", { type: "button", id: "save-table", title: "The rows that are shown, with all columns", onclick: () => save(everything) }, "Download rows (CSV)"),
      h("button", { type: "button", id: "save-shown", title: "The rows and columns that are shown, in their order", onclick: () => save(shown.columns().map((one) => one.key), "shown") }, "As shown (CSV)")),
  });
  const notes = study.notes.length ? h("details", { class: "caption" }, h("summary", {}, "Notes to the table"), h("ul", { class: "list" }, study.notes.map((note) => h("li", {}, note)))) : null;
  bar.refresh();
  return section("table", "Cells", "One row per cell, statistics over its trials. Sort by a heading; open a row for everything that is known about it.", bar.element, shown.element, notes);
}

function rowFacts(row) {
  const entries = Object.keys(study.columns).map((name) => {
    const about = columnOf(name), value = row[name];
    if (value === null || value === undefined || value === "") return null;
    const text = about.kind === "float" ? exact(value, "float") : said(value);
    return h("div", {}, h("dt", { title: about.doc.replace(/`/g, "") }, name.replace(/_/g, " ")), h("dd", { class: about.kind === "json" ? "mono" : null }, text));
  });
  return h("div", { class: "columns" }, h("dl", { class: "pairs" }, entries));
}

function experimentTable() {
  const { names, lines } = study.table;
  const items = lines.map((line) => Object.fromEntries(line.map((text, i) => [names[i], text !== "" && Number.isFinite(Number(text)) ? Number(text) : text])));
  const columns = names.map((name) => ({
    key: name, head: name.replace(/_/g, " "), left: items.some((row) => typeof row[name] === "string" && row[name] !== ""),
    brief: true, exact: (row) => (row[name] === "" ? null : typeof row[name] === "number" ? exact(row[name]) : String(row[name]).length > 30 ? row[name] : null),
    text: (row) => (row[name] === "" ? "-" : typeof row[name] === "number" ? number(row[name], 5, Number.isInteger(row[name])) : row[name]),
  }));
  const shown = grid({ caption: "Table of the experiment", name: "experiment", columns, items });
  const bar = filters(items, {
    selects: [["part", "part"], ["mechanism", "mechanism"], ["epsilon", "epsilon"], ["curve", "curve"]], search: names, grid: shown,
    buttons: h("button", { type: "button", onclick: () => download("table.csv", csvOf(names, lines)) }, "Download table.csv"),
  });
  bar.refresh();
  return section("points", "Table", "The experiment's table: what table.csv holds.", bar.element, shown.element);
}

const CHOOSING = "Choosing the best after seeing private results costs privacy: the ranking compares excess risks that no guarantee covers. It is a simulation, not a release.";

function rankingSection() {
  const state = { problem: 0, keep: {} }, controls = h("div", { class: "controls" }), host = h("div");
  const here = () => study.ranking.filter((one) => one.problem === state.problem);
  let shown = null;
  function draw() {
    const chosen = settings(here(), state.keep);
    shown = here().find((one) => held(one, chosen)) || null;
    const problems = distinct(study.ranking.map((one) => one.problem)).map((at) => [String(at), study.problems[at]]);
    const select = choice(problems, String(state.problem), (value) => { state.problem = Number(value); draw(); });
    controls.replaceChildren(field("problem", select, true), ...settingFields(chosen, (key, value) => { state.keep[key] = value; draw(); }, false), riskSwitch(),
      h("button", { type: "button", class: "push", id: "save-ranking", onclick: save }, "Download ranking (CSV)"));
    host.replaceChildren(shown ? matrix(shown) : h("p", { class: "sub" }, "No cell ran at this setting."));
    view.changed();
  }
  view.add({
    read: () => [...(state.problem ? [["ranking.problem", String(state.problem)]] : []), ...heldEntries("ranking.hold.", state.keep)],
    show(asked) {
      state.problem = Number(known(asked.get("ranking.problem"), study.ranking.map((one) => String(one.problem)), "0"));
      state.keep = heldOf("ranking.hold.", asked, study.ranking);
      draw();
    },
  });
  function save() {
    const names = ["problem", "mechanism", "calibration", "variant", "epsilon", "rank", "excess_risk_median", "excess_risk_per_record_median", "cell"];
    const lines = !shown ? [] : shown.contenders.flatMap((who, i) => shown.epsilons.map((level, j) => [i, j, who, level])).filter(([i, j]) => shown.rows[i][j] !== null)
      .map(([i, j, who, level]) => { const row = rows[shown.rows[i][j]]; return [study.problems[shown.problem], who.mechanism, who.calibration, who.variant, exact(level), exact(shown.ranks[i][j], "int"), exact(row.excess_risk_median), exact(row.excess_risk_per_record_median), row.cell]; });
    download(fileName("csv", "ranking"), csvOf(names, lines));
  }
  risk.watch(draw);
  draw();
  return section("ranking", "Ranking", "Mechanisms by median excess risk at each nominal epsilon, the smallest first; × says how far from the best.",
    controls, host, h("p", { class: "caption" }, CHOOSING));
}

function matrix(found) {
  const value = (i, j) => (found.rows[i][j] === null ? null : riskOf(rows[found.rows[i][j]], risk.each).value);
  const best = found.epsilons.map((_, j) => Math.min(...found.contenders.map((__, i) => (found.ranks[i][j] === 1 ? value(i, j) : Infinity))));
  const mean = (i) => { const got = found.ranks[i].filter((rank) => rank !== null); return got.length ? got.reduce((a, b) => a + b, 0) / got.length : Infinity; };
  const order = found.contenders.map((_, i) => i).sort((a, b) => mean(a) - mean(b) || a - b);
  const line = (i) => h("tr", { class: "row" }, h("th", { scope: "row", class: "left" }, nameOf(found.contenders[i])),
    found.epsilons.map((_, j) => rankCell(found, i, j, value(i, j), best[j])));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranking" }, h("table", { id: "ranks" }, h("caption", { class: "skip" }, "Ranking by median excess risk"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "left" }, "mechanism"), found.epsilons.map((level) => h("th", { scope: "col" }, "epsilon " + number(level))))),
    h("tbody", {}, order.map(line))));
}

function rankCell(found, i, j, value, best) {
  if (value === null) return h("td", { class: "soft" }, "–");
  const rank = found.ranks[i][j], row = rows[found.rows[i][j]];
  if (rank === null) {
    const why = row.guarantee === "none" ? "not private" : `certified epsilon ${number(row.epsilon_accounted)}`;
    return h("td", { class: "soft", title: "Without a rank: " + why }, number(value) + " ", h("span", { class: "tag" }, why));
  }
  const times = rank > 1 && best > 0 ? h("span", { class: "times" }, "×" + number(value / best, 3)) : null;
  return h("td", { class: rank === 1 ? "best" : null }, h("span", { class: "rank" }, "#" + rank), number(value), times);
}

function slopeItems() {
  const free = study.axes.map((axis) => [axis, freeKeys(axis.curves)]).flatMap(([axis, keys]) => axis.curves.filter((one) => one.fit).map((one) => ({
    axis: axisName(axis.name), where: study.problems[one.problem], series: nameOf(one),
    setting: keys.map((key) => heldText(key, one.held[key])).join(", "),
    sum: one.fit, each: one.fit_each,
  })));
  const own = study.figures.flatMap((figure) => figure.curves.map((one, i) => ({
    axis: axisName(figure.axis || ""), where: figure.title, series: one.label || "all", setting: figure.quantity.replace(/_/g, " "), sum: one.fit, each: figure.each ? figure.each.curves[i].fit : one.fit,
  }))).filter((one) => one.sum);
  return [...own, ...free];
}

const signed = (value) => (value === null ? "-" : value.toFixed(3).replace("-", "−"));

function forest(fit) {
  if (fit.slope === null) return h("span", { class: "soft" }, "too few points off the floor");
  const place = (v) => 95 + Math.max(-2.4, Math.min(2.4, v)) * 38;
  const svg = s("svg", { class: "forest", viewBox: "0 0 190 18", "aria-hidden": "true" }, [-2, -1, 0, 1, 2].map((v) => s("line", { x1: place(v), x2: place(v), y1: 2, y2: 16, class: "grid" })));
  svg.append(s("line", { x1: place(fit.slope - fit.half), x2: place(fit.slope + fit.half), y1: 9, y2: 9, class: "ref", hue: "var(--accent)" }),
    s("path", { class: "dot", d: MARKS[0], transform: `translate(${place(fit.slope).toFixed(1)} 9) scale(.8)`, hue: "var(--accent)" }));
  return svg;
}

const forestScale = () => s("svg", { class: "forest", viewBox: "0 0 190 18", "aria-label": "slope from −2 to 2", role: "img" },
  [-2, -1, 0, 1, 2].map((v) => s("text", { x: 95 + v * 38, y: 14, "text-anchor": "middle" }, signed(v).replace(".000", ""))));

function slopesSection() {
  const items = slopeItems(), fit = (row) => (risk.each ? row.each : row.sum);
  if (!items.length) return null;
  const named = (key, head) => ({ key, head, left: true, text: (row) => row[key] || "-" });
  const slope = (key, head, of) => ({ key, head, value: (row) => (fit(row).slope === null ? null : of(fit(row))), text: (row) => (fit(row).slope === null ? "-" : signed(of(fit(row)))), exact: (row) => (fit(row).slope === null ? null : String(of(fit(row)))) });
  const columns = [named("axis", "axis"), ...(distinct(items.map((row) => row.where)).length > 1 ? [named("where", study.figures.length ? "figure or problem" : "problem")] : []), named("series", "curve"), ...(items.some((row) => row.setting) ? [named("setting", "setting")] : []),
    slope("slope", "slope", (f) => f.slope), slope("low", "95 %\nfrom", (f) => f.slope - f.half), slope("high", "95 %\nto", (f) => f.slope + f.half),
    { key: "used", head: "points\nfitted", value: (row) => fit(row).used, text: (row) => `${fit(row).used} of ${fit(row).of}` },
    { key: "plot", head: forestScale(), plain: true, node: (row) => forest(fit(row)) }];
  const shown = grid({ caption: "Fitted log-log slopes", name: "slopes", columns, items });
  const save = () => download(fileName("csv", "slopes"), csvOf(["axis", "where", "curve", "setting", "quantity", "slope", "half_width_95", "points_fitted", "points"],
    shown.sorted().map((row) => [row.axis, row.where, row.series, row.setting, risk.each ? "per record" : "sum", exact(fit(row).slope), exact(fit(row).half), exact(fit(row).used, "int"), exact(fit(row).of, "int")])));
  const bar = filters(items, { selects: [["axis", "axis"], ["where", "problem"], ["series", "curve"]], search: ["axis", "where", "series", "setting"], grid: shown, extra: [riskSwitch()],
    buttons: h("button", { type: "button", id: "save-slopes", onclick: save }, "Download slopes (CSV)") });
  bar.refresh();
  risk.watch(() => shown.update({}));
  return section("slopes", "Slopes", "Least-squares lines through the logarithms of the medians, with 95 % intervals by Student's t. Saturated points (within a factor 2 of the data-free floor) are left out.", bar.element, shown.element);
}

function claimsSection() {
  const tone = (claim) => {
    if (!["confirmed", "refuted"].includes(claim.verdict)) return "";
    return (claim.verdict === "confirmed") === (claim.expected === "holds") ? "good" : "bad";
  };
  const line = (claim) => h("tr", { class: "row" },
    h("td", { class: "left" }, h("span", { class: "tag " + tone(claim) }, claim.verdict)),
    h("td", { class: "left wide" }, h("b", {}, claim.id), h("div", {}, claim.text), claim.allowed ? h("div", { class: "soft" }, claim.allowed) : null, claim.expected === "fails" ? h("div", { class: "soft" }, "Filed as not holding: " + (claim.reason || claim.note)) : claim.note ? h("div", { class: "soft" }, claim.note) : null),
    h("td", { class: "left" }, claim.theorem),
    h("td", { class: "left wide" }, claim.findings.slice(0, 4).map((one) => h("div", {}, [one.curve, one.measured].filter(Boolean).join(": "), one.holds === false ? h("span", { class: "soft" }, " (does not hold)") : one.holds === null ? h("span", { class: "soft" }, " (undecided)") : null)),
      claim.findings.length > 4 ? h("div", { class: "soft" }, `and ${claim.findings.length - 4} more in claims.json`) : null));
  return section("claims", "Claims", "What the experiment claims, and whether these records bear it out.",
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Claims" }, h("table", {}, h("caption", { class: "skip" }, "Claims and verdicts"),
      h("thead", {}, h("tr", {}, ["verdict", "claim", "theorem", "measured"].map((head) => h("th", { scope: "col", class: "left" }, head)))), h("tbody", {}, study.claims.map(line)))));
}

const levelWords = (total) => (total.kind === "none" ? "not private" : total.epsilon === "inf" ? "no promise" : `ε ${number(total.epsilon, 5)}, δ ${number(total.delta, 3)}`);

function ledgerSection() {
  const ledger = study.ledger;
  if (!ledger) return section("ledger", "Privacy ledger", null, h("p", { class: "alert bad" }, "No ledger is shown: the records do not bear one out, or nobody accounted for them."), h("ul", { class: "list" }, study.faults.map((fault) => h("li", {}, fault))));
  const which = (total) => (total.fingerprints.length > 1 ? `${total.fingerprints.length} versions` : said(total.fingerprints[0]).slice(0, 8));
  const several = distinct(ledger.totals.map((total) => total.data)).length < ledger.totals.length;
  const ranked = [...ledger.totals].sort((a, b) => b.fingerprints.length - a.fingerprints.length);
  const cards = ranked.map((total) => h("div", { class: "card" }, h("h3", {}, total.data, " ", h("span", { class: "tag" }, total.relation), several ? [" ", h("code", { class: "soft" }, which(total))] : null),
    h("div", { class: "two" }, h("div", {}, h("span", { class: "big" }, levelWords(total.all_trials)), h("span", { class: "soft" }, `all ${plural(total.releases, "release")}`)),
      h("div", {}, h("span", { class: "big" }, levelWords(total.one_trial_of_each_cell)), h("span", { class: "soft" }, `one trial of each of ${plural(total.cells.length, "cell")}`))),
    h("p", {}, total.statement), h("p", {}, `Accountant: ${total.all_trials.accountant}.`)));
  const word = (key, head) => ({ key, head, left: true, text: (row) => said(row[key]) });
  const num = (key, head, digits = 4) => ({ key, head, text: (row) => number(row[key], digits), exact: (row) => exact(row[key]) });
  const columns = [word("data", "data set"), word("mechanism", "mechanism"), word("calibration", "calibration"), word("relation", "relation"), word("kind", "guarantee"), num("epsilon", "epsilon\n(nominal)"), num("epsilon_accounted", "epsilon\naccounted", 6), num("delta_accounted", "delta", 3),
    { key: "trials", head: "releases", text: (row) => String(row.trials) }, { key: "words", head: "events", left: true, brief: true, value: (row) => eventWords(row), text: (row) => clipped(eventWords(row), 170), exact: (row) => eventWords(row) }, word("accountant", "accountant")];
  const shown = grid({ caption: "Releases", name: "ledger", columns, items: releases, details: releaseFacts });
  const names = ["cell", "data", "fingerprint", "mechanism", "calibration", "relation", "kind", "epsilon", "delta", "epsilon_accounted", "delta_accounted", "accountant", "trials", "noise", "seed", "version"];
  const save = () => download(fileName("csv", "ledger"), csvOf([...names, "events"], shown.sorted().map((row) => [...names.map((name) => exact(row[name], ["trials", "seed"].includes(name) ? "int" : "float")), eventWords(row)])));
  const bar = filters(releases, { selects: [["mechanism", "mechanism"], ["data", "data set"], ["epsilon", "epsilon"], ["kind", "guarantee"]], search: ["data", "mechanism", "statement", "cell", "accountant", "kind", "noise"], grid: shown,
    buttons: h("button", { type: "button", id: "save-ledger", onclick: save }, "Download releases (CSV)") });
  bar.refresh();
  const aside = (title, content) => (content.length ? h("details", {}, h("summary", {}, title), h("ul", { class: "list" }, content.map((text) => h("li", {}, text)))) : null);
  return section("ledger", "Privacy ledger", "What was released about which data set, and what it costs: every epsilon is recomputed from the events of its record.",
    ledger.warnings.map((text) => h("p", { class: "alert" }, text)), study.faults.map((text) => h("p", { class: "alert bad" }, text)),
    cards.length ? h("div", { class: "totals" }, cards.slice(0, 4)) : null,
    cards.length > 4 ? h("details", {}, h("summary", {}, `${cards.length - 4} more totals`), h("div", { class: "totals" }, cards.slice(4))) : null, ...(releases.length ? [bar.element, shown.element] : [h("p", { class: "sub" }, "Nothing was released.")]), h("div", { class: "caption" },
      aside("Choosing among these rows", ledger.choices.map((one) => `${one.data}: ${one.statement} Total: ${levelWords(one.total)}.`)),
      aside("What the relations mean", Object.entries(ledger.relations).map(([name, text]) => `${name}: ${text}`)),
      aside("Cells that released nothing", ledger.not_released.map((one) => `${one.cell}: ${one.status}, ${one.mechanism} at epsilon ${number(one.epsilon)}${one.reason ? ": " + one.reason : ""}`)),
      aside("What the numbers do not cover", ledger.notes)));
}

const eventWords = (row) => row.events.map((event) => event.words).join("; ");

function releaseFacts(row) {
  return h("div", {}, h("p", {}, row.statement), h("ul", { class: "list" }, row.events.map((event) => h("li", {}, h("b", {}, event.event + ": "), event.words))),
    pairs([["asked", `epsilon ${exact(row.epsilon)}, delta ${exact(row.delta)}`], ["accounted", `${row.kind}, epsilon ${exact(row.epsilon_accounted)}, delta ${exact(row.delta_accounted)}`], ["accountant", row.accountant], ["certificate", row.certificate],
      ["noise", `${row.noise}, ${row.arithmetic}, seed ${said(row.seed)}`], ["settings", row.settings ? h("code", {}, JSON.stringify(row.settings)) : null], ["cell", h("code", {}, row.cell)], ["data", h("code", {}, said(row.fingerprint))], ["version", said(row.version)], ["not covered", row.not_covered.join(" ")]]));
}

function provenanceSection() {
  const p = study.provenance, prints = distinct(rows.filter((row) => row.data_fingerprint).map((row) => `${row.dataset} ${row.data_fingerprint}`));
  const columns = Object.entries(study.columns).map(([name, about]) => h("tr", {}, h("td", { class: "left" }, h("code", {}, name)), h("td", { class: "left" }, about.unit || ""), h("td", { class: "left wide" }, about.doc.replace(/`/g, ""))));
  return section("provenance", "Provenance", "From the study's manifest; every record is a file of its own, named by the hash of its cell.",
    h("div", { class: "card" }, pairs([["command", h("code", {}, commandOf())], ["seed scheme", p.seed_scheme], ["records by", p.written_by.map((v) => "dperm " + v).join(", ")], ["source", p.git ? h("code", {}, p.git) : null],
      ["merged from", p.merged.length ? h("span", {}, p.merged.map((text) => h("div", {}, text))) : null],
      ...Object.entries(p.versions), ["data", prints.length ? h("span", {}, prints.map((text) => h("div", {}, h("code", {}, text)))) : null]])),
    h("details", { class: "caption" }, h("summary", {}, "What the columns mean"), h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "skip" }, "Columns"), h("tbody", {}, columns)))));
}

const shell = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\"'\"'") + "'");
const VERBS = ["run", "reproduce", "merge", "account", "report"];
const commandOf = () => {
  const words = study.provenance.argv;
  return ["dperm", ...(VERBS.includes(words[0]) ? [] : ["run"]), ...words].map(shell).join(" ");
};
