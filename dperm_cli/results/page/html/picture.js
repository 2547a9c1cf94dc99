// The figure as a file of its own: title, settings, chart, legend and caption, on white and in the colours of paper whatever the page's are.
const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity", "clip-path"];
const IDLE = { "stroke-width": "1px", "stroke-dasharray": "none", "stroke-linejoin": "miter", "stroke-linecap": "butt", opacity: "1", "clip-path": "none" };
const LETTERS = ["fill", "font-family", "font-size", "font-weight"];
const SIDE = 14;  // the margin beside texts

// {width, title, settings, legend: [[shapes, words]], caption} around a panel; gives {text, width, height}, or null where nothing is drawn.
function makePicture(panel, { width, title, settings, legend, caption }) {
  const chart = makeChart(panel, width);
  if (!chart) return null;
  const svg = s("svg", { width }, s("title", {}, title), s("desc", {}, [`dperm study ${study.title}.`, caption].filter(Boolean).join(" ")));
  const paper = h("div", { class: "paper figure", "aria-hidden": "true" }, svg);
  document.body.append(paper);
  try {
    let y = writeLines(svg, title, "head", SIDE, 24, width - 2 * SIDE, 19);
    if (settings) y = writeLines(svg, settings, "label", SIDE, y, width - 2 * SIDE, 17);
    y -= 8;
    svg.append(s("g", { class: "chart", transform: `translate(0 ${y})` }, [...chart.svg.childNodes]));
    y = placeLegend(svg, legend, width, y + chart.height + 18);
    if (caption) y = writeLines(svg, caption, "soft", SIDE, y + 4, width - 2 * SIDE, 16);
    const height = Math.ceil(y);
    svg.querySelector("desc").after(s("rect", { class: "ground", width, height, fill: "#ffffff" }));
    for (const [name, value] of [["height", height], ["viewBox", `0 0 ${width} ${height}`]]) svg.setAttribute(name, value);
    settle(svg);
    return { text: new XMLSerializer().serializeToString(svg).replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\ufffd") + "\n", width, height };
  } finally { paper.remove(); }
}

// Write a text in lines that fit; the height of the next one.
function writeLines(layer, text, kind, x, y, room, step) {
  let line = null, said = "";
  for (const word of text.split(" ")) {
    const longer = said ? said + " " + word : word;
    if (line) line.textContent = longer;
    if (!line || (said && line.getComputedTextLength() > room)) {
      if (line) { line.textContent = said; y += step; }
      line = s("text", { class: kind, x, y }, word);
      layer.append(line);
      said = word;
    } else said = longer;
  }
  return y + step;
}

// Entries from left to right, in rows; the height below them.
function placeLegend(layer, entries, width, top) {
  let x = SIDE, y = top, below = top;
  for (const [shapes, words] of entries) {
    const entry = s("g", {}, s("g", { transform: "translate(0 -11)" }, shapes));
    layer.append(entry);
    const end = writeLines(entry, words, "label", 42, 0, width - 2 * SIDE - 42, 17);
    const wide = 42 + Math.max(...[...entry.querySelectorAll("text")].map((line) => line.getComputedTextLength()));
    if (x > SIDE && x + wide > width - SIDE) { x = SIDE; y = below; }
    entry.setAttribute("transform", `translate(${x} ${y})`);
    x += wide + 22;
    below = Math.max(below, y + end + 3);
  }
  return below;
}

// What the style sheet says, as attributes of each shape; what only the page needs goes.
function settle(svg) {
  for (const node of svg.querySelectorAll("path, line, rect, text")) {
    const style = getComputedStyle(node);
    for (const name of node.localName === "text" ? LETTERS : PAINT) {
      if (style.getPropertyValue(name) !== IDLE[name]) node.setAttribute(name, style.getPropertyValue(name));
    }
    if (node.getAttribute("stroke") === "none") PAINT.filter((name) => name.startsWith("stroke")).forEach((name) => node.removeAttribute(name));
  }
  for (const node of svg.querySelectorAll("*")) {
    for (const name of node.getAttributeNames()) if (/^(style|tabindex|role|aria-.*)$/.test(name)) node.removeAttribute(name);
  }
}

const saveSvg = (name, made) => made && download(name, made.text, "image/svg+xml");

// Drawn by the browser itself, at twice the size.
async function savePng(name, made) {
  if (!made) return;
  const image = new Image(), canvas = h("canvas", { width: 2 * made.width, height: 2 * made.height }), pen = canvas.getContext("2d");
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(made.text);
  await image.decode();
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(name, blob, "image/png"), "image/png");
}
