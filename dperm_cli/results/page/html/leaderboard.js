// The leaderboard: who is first, a table that sorts and filters, mean ranks, a card for each method.
const FILTERS = ["dataset", "loss", "constraint", "relation", "guarantee", "epsilon", "tuned", "origin", "status"];
const SEARCHED = ["method", "dataset", "loss", "constraint", "relation", "guarantee", "reason"];
const filter = {};
let words = [];

const toCard = (name) => h("a", { href: "#card-" + name }, name);
const shell = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\"'\"'") + "'");
const command = (text) => h("div", { class: "command" }, h("code", {}, text), copyButton({}, () => ["Copy"], () => text, "Select and copy"));

function shownRows() {
  return rows.filter((row) => FILTERS.every((name) => !filter[name] || said(row[name]) === filter[name]) && matches(row, words, SEARCHED));
}

// Where the record lies; a published page has no records beside it.
function linkRecord(row) {
  if (!row.file) return h("span", {}, row.record + ", made again by the command");
  return h("span", {}, h("a", { href: "../" + row.file }, row.file), row.file.includes(row.record) ? null : ", key " + row.record);
}

// What stands behind the numbers of a line: its record, its command and its versions.
function details(row) {
  const rest = study.details.filter((name) => !["command", "record", "file", "versions", "problem"].includes(name));
  return h("div", {},
    pairs([["record", linkRecord(row)], ["versions", row.versions]]),
    row.command ? command(row.command) : null,
    h("div", { class: "columns apart" }, h("dl", { class: "pairs" }, rest
      .filter((name) => row[name] !== null && row[name] !== "")
      .map((name) => h("div", {}, h("dt", { title: columnOf(name).doc }, plainKey(name)), h("dd", {}, typeof row[name] === "number" ? number(row[name]) : said(row[name])))))));
}

const table = grid({
  caption: "Methods and problems", name: "leaderboard",
  columns: study.shown.map((name) => ({ ...recordColumn(name), ...(name === "method" ? { node: (row) => toCard(row.method) } : {}) })),
  items: rows, details,
});

// A number opens its line, as the arrow before it does.
table.element.addEventListener("click", (event) => {
  const line = event.target.closest("tr.row");
  if (line && !event.target.closest("a, button") && !String(getSelection())) line.querySelector(".opener").click();
});

function filters() {
  const count = h("span", { role: "status" });
  const draw = () => {
    const items = shownRows();
    count.textContent = `${items.length} of ${plural(rows.length, "line")}`;
    table.update({ items });
  };
  const search = h("input", { type: "search", placeholder: "method, data set, ...", oninput: () => { words = wordsOf(search.value); draw(); } });
  const selects = FILTERS.map((name) => {
    const values = distinct(rows.map((row) => said(row[name])));
    if (values.length < 2) return null;
    return field(plainKey(name), choice([["", "all"], ...values.map((value) => [value, value])], "", (value) => { filter[name] = value; draw(); }));
  });
  draw();
  return [h("div", { class: "controls" }, field("search", search, true), selects), h("p", { class: "sub" }, count)];
}

function plainTable(caption, heads, lines) {
  const head = h("tr", {}, heads.map(([text, left, doc]) => h("th", { scope: "col", class: left ? "left" : null, title: doc || null }, text)));
  const body = lines.map((line) => h("tr", {}, line.map((value, i) => h("td", { class: heads[i][1] ? (heads[i][0] === "problem" ? "left problem" : "left") : null }, value))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "skip" }, caption), h("thead", {}, head), h("tbody", {}, body)));
}

function winners() {
  const heads = [["problem", true], ["epsilon"], ["first", true], ["its risk"], ["dperm's default", false, "Excess risk of mechanism=auto"],
    ["its place"], ["times the first"], ["best of others", true], ["its risk"], ["floor", false, columnOf("floor").doc]];
  const set = (one) => one.constraint + (one.constraint_radius === null ? "" : " radius " + number(one.constraint_radius));
  const told = (one) => [[one.dataset, one.loss, set(one), one.relation, one.guarantee].join(", "), number(one.epsilon), toCard(one.first), number(one.first_risk, 3),
    number(one.default_risk, 3), one.default_place === null ? "-" : `${one.default_place} of ${one.methods}`, number(one.ratio, 3), one.peer === null ? "-" : toCard(one.peer), number(one.peer_risk, 3), number(one.floor, 3)];
  return plainTable("Who is first on each problem", heads, study.winners.map(told));
}

function ranks() {
  const title = (one) => (one.level === "overall" ? "overall: " : "") + one.title;
  const place = h("div", { id: "ranking" });
  const show = (i) => {
    const found = study.ranks[i];
    const heads = [["method", true], ["mean rank"], ["not told apart", true, "Methods that share a letter"], ["best of these in"], ["refuses"]];
    const lines = found.names.map((one) => [toCard(one.name), number(one.mean_rank, 3), one.alike || "-", one.wins, one.refusals].map((value) => (typeof value === "number" ? String(value) : value)));
    place.replaceChildren(h("p", { class: "sub" }, found.words), plainTable(title(found), heads, lines));
  };
  if (!study.ranks.length) return h("p", { class: "sub" }, "No two methods were asked on the same problems.");
  show(0);
  return [h("div", { class: "controls" }, field("problems", choice(study.ranks.map((one, i) => [String(i), title(one)]), "0", (i) => show(Number(i))), true)), place];
}

function card(one) {
  const audits = one.audits.length ? h("details", {}, h("summary", {}, plural(one.audits.length, "audit")),
    plainTable("Audits of " + one.method, one.heads.map((text) => [text, true]), one.audits)) : null;
  return h("article", { class: "card", id: "card-" + one.method }, h("h3", {}, one.method),
    one.refuted ? h("p", { class: "alert bad" }, "An audit refutes a claim: " + one.refuted) : null,
    pairs(Object.entries(one.facts)), h("p", { class: "caption" }, one.audited), audits);
}

const way = (one) => h("div", { class: "way" }, h("h3", {}, one.title), one.steps.flatMap((step) => [h("p", { class: "sub" }, step.text), ...step.commands.map(command)]));
const section = (id, title, text, ...content) => h("section", { id }, h("h2", {}, title), text ? h("p", { class: "sub" }, text) : null, ...content);
const files = () => h("ul", { class: "list" }, Object.entries(study.tables).map(([name, text]) => h("li", {}, h("a", { href: name, download: name }, name), ": " + text + ".")));

document.getElementById("lead").append(
  h("p", { class: "lede" }, study.lede),
  h("p", { class: "lede" }, "Excess risk is the mean loss of a method above that of the best point without privacy, which is certified: 0 is best. The floor is a point that looks at no data."),
  ...(study.argv.length ? [command(["dperm", ...study.argv].map(shell).join(" "))] : []),
);
document.getElementById("main").append(
  section("winners", "Who is first", study.winning, winners()),
  section("table", "All lines", "Lines of one problem stand together, the best first. Headings sort. A click on a number opens its line: record, command, versions. The name of a method leads to its card.", ...filters(), table.element),
  section("ranks", "Mean ranks", "", ranks()),
  section("cards", "Methods", "What each method claims, who vouches for it, and what audits found. A bound is the least epsilon that an audit could show; it is a lower bound, and no proof.", h("div", { class: "totals" }, study.cards.map(card))),
  section("files", "Reference results", "These files lie beside this page.", files()),
  section("enter", "Enter a method", "", study.enter.map(way)),
);
document.getElementById("foot").textContent = "Made from records alone. The page is one file: it loads nothing, and holds the data it shows.";
document.documentElement.dataset.ready = "1";
