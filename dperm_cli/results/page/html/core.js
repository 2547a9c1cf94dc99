// The study, numbers as the tables write them, elements, files. Text is only ever set as text.
const study = JSON.parse(document.getElementById("study").textContent);
const SVG = "http://www.w3.org/2000/svg";

function unpack(packed) {
  const names = Object.keys(packed.columns);
  const full = names.map((name) => {
    const column = packed.columns[name];
    if ("one" in column) return () => column.one;
    if ("of" in column) return (i) => column.of[column.at[i]];
    return (i) => column.all[i];
  });
  return Array.from({ length: packed.count }, (_, i) => {
    const row = { _at: i };
    names.forEach((name, k) => { row[name] = full[k](i); });
    return row;
  });
}

const rows = unpack(study.rows);
const columnOf = (name) => study.columns[name] || { kind: "text", unit: "", doc: "" };

// The digits and exponent of a number at so many significant digits, ties to even.
function rounded(value, digits) {
  let [mantissa, exponent] = Math.abs(value).toExponential(digits - 1).split("e");
  const exact = Math.abs(value).toPrecision(60).replace(/e.*$/, "").replace(".", "").replace(/^0+/, "");
  const kept = exact.slice(0, digits), rest = exact.slice(digits);
  if (/^50*$/.test(rest) && Number(kept[digits - 1]) % 2 === 0) {
    mantissa = digits > 1 ? kept[0] + "." + kept.slice(1) : kept;
  }
  return [mantissa, Number(exponent)];
}

const stripped = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

function number(value, digits = 4, whole = false) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  if (whole && Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  if (value === 0) return "0";
  const [mantissa, exponent] = rounded(value, digits), size = Math.abs(value);
  const sign = value < 0 ? "-" : "";
  const fixed = Number(mantissa + "e" + exponent);
  if ((size >= 1e-3 && size < 1e5) || (exponent >= -4 && exponent < digits)) {
    return sign + stripped(fixed.toFixed(Math.max(0, digits - 1 - exponent)));
  }
  return sign + stripped(mantissa) + "e" + exponent;
}

// A double as the CSV files write it: the shortest digits that give it back.
function written(value) {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa, power] = Math.abs(value).toExponential().split("e");
  const sign = value < 0 ? "-" : "", exponent = Number(power), digits = mantissa.replace(".", "");
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return sign + mantissa + "e" + (exponent < 0 ? "-" : "+") + size;
  }
  if (exponent < 0) return sign + "0." + "0".repeat(-exponent - 1) + digits;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return sign + whole + "." + (digits.slice(exponent + 1) || "0");
}

function exact(value, kind) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") return kind === "int" ? String(value) : written(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const quoted = (text) => (/[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text);
const csvOf = (names, lines) => [names, ...lines].map((line) => line.map(quoted).join(",") + "\n").join("");

function download(name, content, type = "text/csv;charset=utf-8") {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const fileName = (ending, ...words) => [study.title, ...words].join("-").replace(/[^A-Za-z0-9_.-]+/g, "_").slice(0, 90) + "." + ending;

// A button that copies a text and says so. Without a clipboard it says what to do instead.
function copyButton(attributes, label, text, instead) {
  const button = h("button", { type: "button", ...attributes, onclick: async () => {
    let said = "Copied";
    try { await navigator.clipboard.writeText(text()); } catch { said = instead; }
    button.replaceChildren(said);
    setTimeout(() => button.replaceChildren(...label()), 1500);
  } }, label());
  return button;
}

// h("td", {class: "left", onclick: f}, "text", node, ...)
function h(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

function s(tag, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), attributes, children);
}

function dress(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "hue") node.style.setProperty("--c", value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const pairs = (entries) => h("dl", { class: "pairs" }, entries
  .filter(([, value]) => value !== null && value !== undefined && value !== "")
  .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]).flat());

const distinct = (values) => [...new Set(values)];
const plural = (count, word) => count + " " + word + (count === 1 ? "" : "s");
const plainKey = (key) => key.replace(/^dataset\.|^mechanism\.|^constraint\./, "").replace(/_/g, " ");

let fieldCount = 0;
function field(label, control, grow = false) {
  control.id = control.id || "field" + ++fieldCount;
  return h("div", { class: "field" + (grow ? " grow" : "") }, h("label", { for: control.id }, label), control);
}

// choices: [[value, text], ...]
function choice(choices, value, change) {
  const control = h("select", { onchange: () => change(control.value) });
  for (const [of, text] of choices) control.append(h("option", { value: of, selected: of === value }, text));
  return control;
}

function check(label, on, change) {
  const box = h("input", { type: "checkbox", onchange: () => change(box.checked) });
  box.checked = on;
  return h("label", { class: "check" }, box, label);
}

// Sum over records or per record: one switch for the whole page, shown in several places.
const risk = {
  each: false,
  listeners: [],
  watch(listener) { this.listeners.push(listener); },
  set(each) {
    this.each = each;
    document.querySelectorAll(".risk button").forEach((one) => {
      one.setAttribute("aria-pressed", String((one.dataset.each === "1") === each));
    });
    this.listeners.forEach((listener) => listener());
    view.changed();
  },
};
view.add({
  read: () => (risk.each ? [["risk", "record"]] : []),
  show: (asked) => risk.set(asked.get("risk") === "record"),
});

function riskSwitch() {
  const one = (each, text) => h("button", {
    type: "button", "data-each": each ? "1" : "0", "aria-pressed": String(risk.each === each),
    onclick: () => risk.set(each),
  }, text);
  return h("div", { class: "field" }, h("span", {}, "excess risk"),
    h("div", { class: "seg risk", role: "group", "aria-label": "Excess risk" },
      one(false, "Sum over records"), one(true, "Per record")));
}

// The values of a row as the chart needs them; the band is divided by n, the rest are columns.
function riskOf(row, each) {
  const per = each ? row.n : 1;
  const over = (value) => (value === null || value === undefined || !per ? null : value / per);
  return {
    value: each ? row.excess_risk_per_record_median : row.excess_risk_median,
    low: over(row.excess_risk_q05), high: over(row.excess_risk_q95),
    floor: each ? row.floor_excess_risk_per_record : row.floor_excess_risk,
    upper: over(row.bound_upper), lower: over(row.bound_lower),
    saturated: row.saturated, trials: row.trials, gap: over(row.optimum_gap),
  };
}
