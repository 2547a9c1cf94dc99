// A table that sorts by its headings, opens rows, and shows long studies in steps. It is drawn by update().
// columns: {key, head, doc, left, value(row), text(row), node(row)}
const STEP = 100;

function grid({ caption, columns, items, details, name }) {
  const state = { columns, items, key: null, down: false, limit: STEP, open: new Set() };
  const head = h("thead"), body = h("tbody");
  const table = h("table", {}, h("caption", { class: "skip" }, caption), head, body);
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
  const below = h("div", { class: "below" });
  const element = h("div", { "data-grid": name }, scroll, below);

  function sorted() {
    if (state.key === null) return state.items;
    const column = state.columns.find((one) => one.key === state.key);
    if (!column) return state.items;
    const value = column.value || ((row) => row[column.key]);
    const turn = state.down ? -1 : 1;
    const nothing = (x) => x === null || x === undefined || x === "";
    return state.items.map((row, i) => [value(row), i, row]).sort(([a, i], [b, j]) => {
      if (nothing(a) || nothing(b)) return nothing(a) - nothing(b) || i - j;
      const both = typeof a === "number" && typeof b === "number";
      const order = both ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return order * turn || i - j;
    }).map(([, , row]) => row);
  }

  function sortBy(key) {
    if (state.key !== key) { state.key = key; state.down = false; }
    else if (!state.down) state.down = true;
    else state.key = null;
    draw();
    view.changed();
    const again = head.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (again) again.focus();
  }

  function drawHead() {
    const cells = state.columns.map((column) => {
      const on = state.key === column.key;
      const sort = on ? (state.down ? "descending" : "ascending") : "none";
      const label = column.plain ? column.head
        : h("button", { type: "button", "data-key": column.key, onclick: () => sortBy(column.key) }, column.head);
      return h("th", { scope: "col", class: column.left ? "left" : null, title: column.doc || null,
        "aria-sort": column.plain ? null : sort }, label);
    });
    if (details) cells.unshift(h("th", { scope: "col", class: "left" }, h("span", { class: "skip" }, "Details")));
    head.replaceChildren(h("tr", {}, cells));
  }

  function toggle(row, line, button) {
    const open = !state.open.has(row);
    if (open) state.open.add(row); else state.open.delete(row);
    button.setAttribute("aria-expanded", String(open));
    line.classList.toggle("open", open);
    if (open) line.after(drawer(row)); else line.nextElementSibling.remove();
  }

  const drawer = (row) => h("tr", { class: "more-of" },
    h("td", { colspan: state.columns.length + 1 }, details(row)));

  function drawRow(row) {
    const cells = state.columns.map((column) => {
      const content = column.node ? column.node(row) : column.text(row);
      return h("td", { class: [column.left && "left", column.wide && "wide", column.brief && "brief"].filter(Boolean).join(" ") || null,
        title: column.exact ? column.exact(row) : null }, content);
    });
    const line = h("tr", { class: "row" });
    if (details) {
      const open = state.open.has(row);
      const button = h("button", { type: "button", class: "opener", "aria-expanded": String(open),
        "aria-label": "Details of this row", onclick: () => toggle(row, line, button) });
      cells.unshift(h("td", { class: "left" }, button));
      line.classList.toggle("open", open);
    }
    line.append(...cells);
    return details && state.open.has(row) ? [line, drawer(row)] : [line];
  }

  function draw() {
    drawHead();
    const all = sorted(), some = all.slice(0, state.limit);
    body.replaceChildren(...some.flatMap(drawRow));
    const left = all.length - some.length;
    below.replaceChildren(...(left > 0 ? [
      h("span", {}, `${some.length} of ${all.length} rows are shown.`),
      h("button", { type: "button", onclick: () => { state.limit = Infinity; draw(); } }, "Show all"),
    ] : []));
  }

  // The order as a text: a column's key, after a minus where it descends; empty for the given order.
  const order = () => (state.key === null ? "" : (state.down ? "-" : "") + state.key);
  function sortAs(text) {
    const key = (text || "").replace(/^-/, ""), known = state.columns.some((one) => one.key === key && !one.plain);
    Object.assign(state, known ? { key, down: text[0] === "-" } : { key: null, down: false });
  }

  return {
    element, sorted, name, order, sortAs,
    columns: () => state.columns,
    update(changes) { Object.assign(state, changes); draw(); },
  };
}

// A column of a record, written as the tables write it.
function recordColumn(name) {
  const about = columnOf(name);
  const numeric = about.kind === "int" || about.kind === "float";
  const words = HEADS[name] || name.replace(/_/g, " ");
  if (name === "status") return { key: name, head: words, left: true, doc: about.doc.replace(/`/g, ""), text: (row) => row.status, node: (row) => statusTag(row) };
  return {
    key: name, head: words, left: !numeric, brief: !numeric, doc: about.doc.replace(/`/g, "") + (about.unit ? ` [${about.unit}]` : ""),
    text: (row) => (numeric ? number(row[name], 4, about.kind === "int") : said(row[name])),
    exact: (row) => (about.kind === "float" ? exact(row[name], about.kind) : said(row[name]).length > 30 ? said(row[name]) : null),
  };
}

const statusTag = (row) => (row.status === "ok" ? "ok" : h("span", { class: "tag " + (row.status === "failed" ? "bad" : "warn"), title: row.reason || null }, row.status));
const said = (value) => (value === null || value === undefined ? "-" : typeof value === "boolean" ? (value ? "yes" : "no") : String(value));
const HEADS = {
  epsilon: "epsilon\n(nominal)", epsilon_accounted: "epsilon\naccounted", noise_scale: "noise\nscale",
  constraint_radius: "radius", excess_risk_median: "excess risk\nmedian", excess_risk_q05: "5 %", excess_risk_q95: "95 %",
  excess_risk_per_record_median: "excess risk\nper record", floor_excess_risk: "data-free\nfloor",
  bound_upper: "upper\nbound", bound_lower: "lower\nbound", train_metric: "train\nmetric", test_metric: "test\nmetric",
};

// A search over several columns, every word of it.
function matches(row, words, names) {
  if (!words.length) return true;
  const text = names.map((name) => said(row[name])).join("\u0001").toLowerCase();
  return words.every((word) => text.includes(word));
}

const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
