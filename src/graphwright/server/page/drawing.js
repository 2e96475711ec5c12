// Drawings as SVG: graphs, spectra, fingerprints, and the transport plan as a table of shades.

const SVG = "http://www.w3.org/2000/svg";
const FAINTEST = 0.3;

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const percent = (value) => {
  if (value >= 0.9995) return "100\u00a0%";
  if (value >= 0.001) return `${(100 * value).toFixed(1)}\u00a0%`;
  return value < 1e-6 ? "≈\u00a00\u00a0%" : `${(100 * value).toPrecision(1)}\u00a0%`;
};
// What is wrong must be seen, however unsure the model was of it.
const opacity = ({ certainty, verdict }) => Math.max(verdict === "wrong" ? 0.75 : 0, FAINTEST + (1 - FAINTEST) * certainty);
export { percent };
const written = (formula) => formula.replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

/** A drawing of the API. picture: a data URI to draw it on, where its places are those of the picture. */
export function drawn(drawing, label, picture = null) {
  if (drawing.svg) {
    const parsed = new DOMParser().parseFromString(drawing.svg, "image/svg+xml").documentElement;
    const image = document.importNode(parsed, true);
    image.setAttribute("role", "img");
    image.setAttribute("aria-label", label);
    image.style.maxWidth = `${1.3 * image.viewBox.baseVal.width}px`; // bonds of one length, whatever the molecule
    return image;
  }
  return graph(drawing, label, drawing.on_picture ? picture : null);
}

function graph(drawing, label, picture) {
  const { nodes, edges } = drawing;
  const points = nodes.map((node) => [100 * node.x, 100 * node.y]);
  // Nodes that match nothing stand outside.
  const low = (axis) => Math.min(0, ...points.map((point) => (point[axis] < 0 ? point[axis] - 7 : 0)));
  const high = (axis) => Math.max(100, ...points.map((point) => (point[axis] > 100 ? point[axis] + 7 : 100)));
  const box = [low(0), low(1), high(0) - low(0), high(1) - low(1)];
  const root = svg("svg", { viewBox: box.join(" "), role: "img", "aria-label": label });
  if (picture) root.append(svg("image", { href: picture, width: 100, height: 100, class: "ground" }));
  const labels = [...new Set(edges.map((edge) => edge.label))].sort();
  for (const edge of edges) {
    const [[x1, y1], [x2, y2]] = [points[edge.source], points[edge.target]];
    const line = svg("line", { x1, y1, x2, y2, class: `edge ${edge.verdict}`, opacity: edge.verdict === "missing" ? 1 : opacity(edge) });
    if (labels.length > 1 && edge.verdict !== "missing" && labels.indexOf(edge.label)) {
      line.setAttribute("stroke-dasharray", ["", "4 2", "1 2", "5 2 1 2"][labels.indexOf(edge.label) % 4]);
    }
    line.append(svg("title", {}, described(edge, "edge")));
    if (picture) root.append(svg("line", { x1, y1, x2, y2, class: "halo" }));
    root.append(line);
  }
  const radius = nodes.length > 14 ? 3.4 : 4.4;
  const lettered = nodes.every((node) => node.label.length <= 2);
  nodes.forEach((node, at) => {
    const [cx, cy] = points[at];
    const missing = node.verdict === "missing";
    const circle = svg("circle", { cx, cy, r: radius, class: `node ${missing ? "missing" : ""}`, fill: node.color, "fill-opacity": opacity(node) });
    circle.append(svg("title", {}, described(node, "node")));
    root.append(circle);
    if (node.verdict === "wrong") root.append(svg("circle", { cx, cy, r: radius + 2, class: "ring" }));
    if (lettered && !missing) root.append(svg("text", { x: cx, y: cy, class: "letter" }, node.label));
  });
  return root;
}

function described(part, kind) {
  if (part.verdict === "missing") return `missing ${kind}: ${part.label}`;
  const judged = part.verdict === "wrong" ? ", not in the truth" : "";
  const numbers = Object.entries(part.numbers ?? {}).map(([name, value]) => `, ${name} ${short(value)}`);
  return `${kind}: ${part.label}, ${percent(part.certainty)} certain${numbers.join("")}${judged}`;
}

const short = (value) => String(Number(value.toPrecision(4)));

/** The nodes with their numbers, for those who read them. given: whether nobody had to predict them. */
export function nodeTable(nodes, given) {
  const real = nodes.filter((node) => node.verdict !== "missing");
  const names = Object.keys(real[0]?.numbers ?? {});
  const heads = ["node", ...(given ? [] : ["certain"]), ...names];
  const rows = real.map((node) => [node.label, ...(given ? [] : [percent(node.certainty)]), ...names.map((name) => short(node.numbers[name]))]);
  return folded("The nodes as a table", heads, rows);
}

function folded(title, heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map((row) => element("tr", {}, ...row.map((text) => element("td", {}, text))));
  const table = element("table", { class: "values" }, element("thead", {}, head), element("tbody", {}, ...body));
  return element("details", {}, element("summary", {}, title), element("div", { class: "scroll" }, table));
}

/** A label's colour. */
export function dot(color, title = null) {
  const made = element("span", { class: "dot", title });
  made.style.background = color;
  return made;
}

/** Sticks over m/z, explained peaks in colour and the largest of them named. */
export function spectrum(input, width) {
  const height = 250, left = 18, right = 18, top = 26, bottom = 40;
  const { peaks, precursor } = input;
  const mzs = peaks.map((peak) => peak.mz).concat(precursor ? [precursor] : []);
  const [least, most] = [Math.min(...mzs), Math.max(...mzs)];
  const pad = Math.max((most - least) * 0.06, 2);
  const tallest = Math.max(...peaks.map((peak) => peak.intensity));
  const x = (mz) => left + ((mz - least + pad) / (most - least + 2 * pad)) * (width - left - right);
  const y = (intensity) => height - bottom - (intensity / tallest) * (height - top - bottom);
  const explained = peaks.filter((peak) => peak.formula).length;
  const label = `Spectrum of ${peaks.length} peaks from m/z ${least.toFixed(1)} to ${most.toFixed(1)}, ${explained} of them explained; listed below.`;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  root.append(svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "axis" }));
  for (const tick of ticks(least - pad, most + pad, width / 90)) {
    root.append(svg("text", { x: x(tick), y: height - bottom + 18, class: "axis-text" }, String(tick)));
  }
  root.append(svg("text", { x: width / 2, y: height - 4, class: "axis-text" }, "m/z"));
  if (precursor) root.append(svg("line", { x1: x(precursor), x2: x(precursor), y1: top, y2: height - bottom, class: "precursor" }, svg("title", {}, `precursor, m/z ${precursor.toFixed(4)}`)));
  for (const peak of peaks) {
    root.append(svg("line", { x1: x(peak.mz), x2: x(peak.mz), y1: y(0), y2: y(peak.intensity), class: `peak ${peak.formula ? "explained" : ""}` }));
  }
  const named = [];
  for (const peak of peaks.filter((each) => each.formula).sort((a, b) => b.intensity - a.intensity)) {
    const half = 3.3 * peak.formula.length + 4;
    const at = Math.min(Math.max(x(peak.mz), half), width - half);
    if (named.length === 8 || named.some((other) => Math.abs(other.at - at) < half + other.half)) continue;
    named.push({ at, half });
    root.append(svg("text", { x: at, y: y(peak.intensity) - 7, class: "peak-name" }, written(peak.formula)));
  }
  for (const peak of peaks) {
    root.append(svg("rect", { x: x(peak.mz) - 4, y: top, width: 8, height: height - top - bottom, class: "hit" }, svg("title", {}, peakInWords(peak, tallest))));
  }
  return root;
}

function peakInWords(peak, tallest) {
  const error = peak.error === null || peak.error === undefined ? "" : `, ${peak.error.toFixed(1)} ppm off`;
  return `m/z ${peak.mz.toFixed(4)}, ${percent(peak.intensity / tallest)}: ${peak.formula ? written(peak.formula) + error : "not explained"}`;
}

function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 2);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(Math.round(at * 1000) / 1000);
  return found;
}

/** The peaks for those who read them. */
export function peakTable(peaks) {
  const rows = peaks.map((peak) => [peak.mz.toFixed(4), peak.intensity.toPrecision(3), peak.formula ? written(peak.formula) : "–"]);
  return folded("The peaks as a table", ["m/z", "intensity", "explained by"], rows);
}

/** The active bits of a fingerprint as a field of 32 x 64. */
export function fingerprint(bits) {
  const root = svg("svg", { viewBox: "0 0 64 32", role: "img", "aria-label": `${bits.length} active bits of 2048` });
  root.append(svg("rect", { width: 64, height: 32, class: "field" }));
  for (const bit of bits) root.append(svg("rect", { x: bit % 64, y: Math.floor(bit / 64), width: 1, height: 1, class: "bit" }, svg("title", {}, `bit ${bit}`)));
  return root;
}

/** A plan as a table of shades; arrow keys walk through it, `say` is told of the cell. */
export function plan(given, colors, say) {
  const short = (text) => {
    const name = (/\(([^,)]+)/.exec(text) ?? [null, ""])[1];
    if (colors[name]) return dot(colors[name], name);
    return /^no node/.test(text) ? "–" : name.startsWith("present") ? "" : name.slice(0, 2);
  };
  const head = element("tr", {}, element("td", { class: "corner", "aria-hidden": "true" }), ...given.nodes.map((node) => element("th", { scope: "col", "aria-label": node }, short(node))));
  head.firstChild.style.background = "none";
  const body = element("tbody", {});
  const cells = given.mass.map((row, at) => {
    const line = element("tr", {}, element("th", { scope: "row", "aria-label": given.slots[at] }, `${/slot (\d+)/.exec(given.slots[at])[1]} `, short(given.slots[at])));
    const made = row.map((mass, column) => {
      const words = `${given.slots[at]} takes ${mass.toFixed(2)} of ${given.nodes[column]}`;
      const cell = element("td", { tabindex: at || column ? -1 : 0, "aria-label": words, class: at >= given.size || column >= given.size ? "padding" : null });
      if (mass > 0.004) cell.style.background = `rgba(var(--heat), ${Math.min(1, 0.08 + 0.92 * mass)})`;
      const tell = () => say(words[0].toUpperCase() + words.slice(1));
      cell.addEventListener("mouseenter", tell);
      cell.addEventListener("focus", tell);
      return cell;
    });
    line.append(...made);
    body.append(line);
    return made;
  });
  body.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    const row = cells.findIndex((line) => line.includes(event.target));
    const next = cells[row + step[0]]?.[cells[row].indexOf(event.target) + step[1]];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  return element("table", { class: "plan", "aria-label": "Transport plan; arrow keys move between cells" }, element("thead", {}, head), body);
}
