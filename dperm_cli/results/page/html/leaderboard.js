// The leaderboard: a table that sorts and filters, mean ranks, and a card for each method.
const FILTERS = ["method", "dataset", "loss", "constraint", "relation", "guarantee", "epsilon", "status"];
const filter = {};

function shownRows() {
  return rows.filter((row) => FILTERS.every((name) => !filter[name] || said(row[name]) === filter[name]));
}

const table = grid({
  caption: "Methods and problems", name: "leaderboard",
  columns: study.shown.map((name) => ({ ...recordColumn(name), ...(name === "method" ? { node: (row) => h("a", { href: "#card-" + row.method }, row.method) } : {}) })),
  items: rows,
  details: (row) => pairs(study.details.map((name) => [plainKey(name), row[name] === null ? "" : said(row[name])])),
});

function filters() {
  const draw = () => table.update({ items: shownRows() });
  return h("div", { class: "controls" }, FILTERS.map((name) => {
    const values = distinct(rows.map((row) => said(row[name])));
    const select = choice([["", "all"], ...values.map((value) => [value, value])], "", (value) => { filter[name] = value; draw(); });
    return field(plainKey(name), select);
  }));
}

function ranks(found) {
  const parts = [h("h3", {}, found.title), h("p", { class: "sub" }, found.words)];
  const head = h("tr", {}, ["method", "mean rank", "best in", "refuses"].map((word) => h("th", { scope: "col" }, word)));
  const body = found.names.map((one) => h("tr", {}, [one.name, number(one.mean_rank, 3), one.wins, one.refusals].map((value) => h("td", {}, String(value)))));
  return h("div", {}, ...parts, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, head), h("tbody", {}, body))));
}

const card = (one) => h("article", { class: "card", id: "card-" + one.method }, h("h3", {}, one.method),
  one.refuted ? h("p", { class: "alert bad" }, one.refuted) : null, pairs(Object.entries(one.facts)));

document.getElementById("lead").append(h("p", { class: "lede" }, study.lede));
document.getElementById("main").append(
  h("section", { id: "table" }, filters(), table.element),
  h("section", { id: "ranks" }, h("h2", {}, "Mean ranks"), study.ranks.map(ranks)),
  h("section", { id: "cards" }, h("h2", {}, "Methods"), study.cards.map(card)),
  h("section", { id: "enter" }, h("h2", {}, "Enter a method"), study.enter.map((text) => h("p", { class: "sub" }, text))),
);
document.getElementById("foot").textContent = "Made from records alone. The page is one file: it loads nothing, and holds the data it shows.";
table.update({});
document.documentElement.dataset.ready = "1";
