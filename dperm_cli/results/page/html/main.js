// The page, from top to bottom.
function lead() {
  const count = (status) => rows.filter((row) => row.status === status).length;
  const states = ["ok", "planned", "unsupported", "failed"].map((name) => [name, count(name)]).filter(([, k]) => k);
  const trials = rows.reduce((sum, row) => sum + (row.trials || 0), 0);
  const listed = (name) => distinct(rows.map((row) => row[name])).filter((v) => v !== null && v !== undefined);
  const short = (values) => (values.length > 6 ? `${values.slice(0, 5).join(", ")} and ${values.length - 5} more` : values.join(", "));
  const span = (values) => (values.length > 1 ? `${number(Math.min(...values))} – ${number(Math.max(...values))}` : values.map((v) => number(v)).join(""));
  const fact = (name, value) => (value ? h("div", {}, h("dt", {}, name), h("dd", {}, value)) : null);
  const command = commandOf();
  const copy = copyButton({}, () => ["Copy"], () => command, "Select and copy");
  return [
    study.about ? h("p", { class: "lede" }, [study.about.paper, study.about.text, `size=${study.about.size}`].filter(Boolean).join(" · ")) : null,
    h("dl", { class: "facts" }, fact("data sets", short(listed("dataset"))), fact("mechanisms", short(listed("mechanism"))), fact("losses", short(listed("loss"))), fact("epsilon", span(listed("epsilon"))),
      fact("cells", `${rows.length}` + (states.length > 1 || (states[0] && states[0][0] !== "ok") ? ` (${states.map(([name, k]) => `${k} ${name}`).join(", ")})` : "")), fact("trials", trials ? String(trials) : ""), fact("dperm", study.provenance.versions.dperm || "")),
    study.provenance.argv.length ? h("div", { class: "command" }, h("code", {}, command), copy) : null,
  ];
}

function alerts() {
  const bad = rows.some((row) => row.guarantee === "none") ? ["Rows with guarantee none are NOT private."] : [];
  return [...study.gaps, ...bad].map((text) => h("p", { class: "alert" }, text)).concat(study.faults.map((text) => h("p", { class: "alert bad" }, "The privacy ledger does not hold: " + text)));
}

function mark(links) {
  const seen = new Map();
  const watch = new IntersectionObserver((entries) => {
    entries.forEach((entry) => seen.set(entry.target.id, entry.isIntersecting));
    const first = links.find((link) => seen.get(link.dataset.of));
    if (first) { const list = first.closest("ul"); list.scrollLeft = first.offsetLeft - (list.clientWidth - first.offsetWidth) / 2; }
    if (first) view.section = first.dataset.of;
    links.forEach((link) => { if (link === first) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current"); });
  }, { rootMargin: "-60px 0px -55% 0px" });
  document.querySelectorAll("main section").forEach((one) => watch.observe(one));
}

function build() {
  document.getElementById("lead").append(...lead().filter(Boolean));
  const drawn = study.axes.length || study.figures.length ? curvesSection() : null;
  const parts = [
    ["Curves", drawn && drawn.element], ["Claims", study.claims.length ? claimsSection() : null], ["Table", study.table ? experimentTable() : null], ["Cells", tableSection()],
    ["Ranking", study.ranking.length ? rankingSection() : null], ["Slopes", slopesSection()], ["Privacy ledger", ledgerSection()], ["Provenance", provenanceSection()],
  ].filter(([, element]) => element);
  const main = document.getElementById("main");
  main.append(...alerts(), ...parts.map(([, element]) => element));
  const links = parts.map(([title, element]) => h("a", { href: "#" + element.id, "data-of": element.id }, title));
  document.getElementById("nav").append(...links.map((link) => h("li", {}, link)));
  document.getElementById("nav").after(copyButton({ id: "copy-link" }, () => ["Copy link", h("span", { class: "long" }, " to this view")], () => view.link(), "Copy the address"));
  document.getElementById("foot").textContent = `Made by dperm ${study.provenance.versions.dperm || ""} from the records of the study. This page is one file: it loads nothing, and holds the data it shows.`;
  if (drawn) drawn.draw();
  mark(links);
  view.open(parts.map(([, element]) => element.id));
  document.documentElement.dataset.ready = "1";
}

build();
