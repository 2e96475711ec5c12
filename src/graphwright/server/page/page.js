// The page: choose a model, give it an input, see what it predicts.

import { dot, drawn, element, fingerprint, nodeTable, peakTable, percent, plan, spectrum } from "./drawing.js";

const at = (id) => document.getElementById(id);
const FIRST = "coloring10";

let cards = [];
let card = null;
let answer = null;
let chosen = 0;
let asking = null; // of the request on its way
let again = null; // asks for another row of the same input
let number = 1; // of the example
let wanted = false; // whether a person asked, and not a slider or the page itself

// Asking.

async function request(path, options, started = performance.now()) {
  const response = await fetch(path, options);
  let body = null;
  try {
    body = await response.json();
  } catch {
    throw new Error(`The server gave no answer that can be read (${response.status}).`);
  }
  if (!response.ok) throw new Error(body.error ?? `The server refused (${response.status}).`);
  return { body, milliseconds: performance.now() - started };
}

/** Whether the answer came, and nothing was asked meanwhile. */
async function ask(path, options, repeat = null) {
  asking?.abort();
  const mine = (asking = new AbortController());
  document.body.classList.add("busy");
  at("result").setAttribute("aria-busy", "true");
  const slow = setTimeout(() => say("Predicting …"), 300);
  try {
    const { body, milliseconds } = await request(path, { ...options, signal: mine.signal });
    if (mine !== asking) return false;
    answer = body;
    again = repeat;
    chosen = 0;
    at("error").hidden = true;
    show(milliseconds);
    return true;
  } catch (error) {
    if (mine !== asking || error.name === "AbortError") return false;
    const offline = error instanceof TypeError;
    fail(offline ? "The server cannot be reached. Is it still running?" : error.message);
    return false;
  } finally {
    clearTimeout(slow);
    if (mine === asking) {
      asking = null;
      document.body.classList.remove("busy");
      at("result").removeAttribute("aria-busy");
    }
  }
}

const posted = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

async function askExample() {
  const given = { model: card.name, number };
  if (card.sliders) Object.assign(given, { regions: Number(at("regions").value), noise: Number(at("noise").value) });
  if (await ask("api/predict/example", posted(given))) at("text").value = answer.input.text ?? "";
}

function askText(row = 1) {
  const text = at("text").value;
  if (!text.trim()) return fail(`There is nothing to predict from yet: paste ${card.takes_text}.`);
  const given = { model: card.name, text, row };
  if (card.adducts.length) {
    given.formula = at("formula").value.trim();
    given.adduct = at("adduct").value;
    const precursor = at("precursor").value.trim().replace(",", ".");
    if (precursor && !(Number(precursor) > 0)) return fail(`The precursor m/z must be a number, not ${precursor}.`);
    if (precursor) given.precursor = Number(precursor);
  }
  return ask("api/predict", posted(given), askText);
}

function askFile(file, row = 1) {
  if (!file) return null;
  wanted = true;
  const query = new URLSearchParams({ model: card.name, name: file.name.slice(-200), row });
  const options = { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file };
  return ask(`api/predict/file?${query}`, options, (other) => askFile(file, other));
}

// Telling.

function say(text) {
  at("status").textContent = text;
}

function fail(sentence) {
  say("");
  at("answer").hidden = true;
  at("eyebrow").textContent = card?.title ?? "";
  at("error").textContent = sentence;
  at("error").hidden = false;
  look();
}

/** On a phone the answer is below the form. */
function look() {
  if (wanted && innerWidth <= 900) at("result").scrollIntoView();
  wanted = false;
}

function show(milliseconds) {
  at("answer").hidden = false;
  showVerdict();
  showRows();
  at("notes").replaceChildren(...answer.notes.map((note) => element("li", {}, note)));
  showPanels();
  showCandidates();
  showPlan();
  const parts = answer.timings.map((part) => `${part.name} ${time(part.milliseconds)}`);
  at("timings").textContent = `${answer.model}: answered in ${time(milliseconds)} (${parts.join(", ")})`;
  look();
}

const time = (milliseconds) => (milliseconds < 1000 ? `${Math.round(milliseconds)}\u00a0ms` : `${(milliseconds / 1000).toFixed(1)}\u00a0s`);

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function verdict() {
  const candidate = answer.candidates[chosen];
  if (candidate.edits === null) {
    if (candidate.checked) return ["right", "A molecule with this very fingerprint"];
    if (candidate.checked === false) return ["", "No molecule with this fingerprint was found"];
    return ["", chosen ? `Candidate ${chosen + 1}` : `The likeliest ${card.answer}`];
  }
  if (candidate.edits === 0) return ["right", "Exactly right"];
  return ["wrong", candidate.edits === 1 ? "One edit from the truth" : `${candidate.edits} edits from the truth`];
}

function showVerdict() {
  const [kind, words] = verdict();
  const candidate = answer.candidates[chosen];
  const { described } = candidate.drawing;
  at("verdict").textContent = words;
  at("verdict").parentElement.className = `verdict ${kind}`;
  at("verdict-detail").textContent = `${capital(described.split(";")[0])}; the model gives it ${percent(candidate.probability)}.`;
  at("eyebrow").textContent = card.title;
  say("");
  at("spoken").textContent = `${words}: ${described}`;
}

function showRows() {
  const several = answer.rows.length > 1 && again !== null;
  at("rows").hidden = !several;
  if (!several) return;
  at("row").replaceChildren(...answer.rows.map((name, index) => element("option", { value: index + 1, selected: index + 1 === answer.row }, `${index + 1}: ${name}`)));
}

function panel(title, content, caption, wide = false) {
  return element("figure", { class: `panel ${wide ? "wide" : ""}` }, element("h2", {}, title), element("div", { class: card.sliders ? "drawn upper" : "drawn" }, content), element("figcaption", {}, ...caption));
}

function inputPanel() {
  const { input } = answer;
  if (input.peaks) {
    const width = Math.max(300, at("panels").clientWidth - 40);
    const made = panel("Spectrum", spectrum(input, width), [`${input.name}: ${input.caption}`], true);
    made.append(peakTable(input.peaks));
    return made;
  }
  if (input.bits) return panel("Fingerprint", fingerprint(input.bits), [input.caption]);
  return panel("Input", element("img", { src: input.image, alt: `The input: ${input.caption}`, class: card.sliders ? "picture" : null }), [input.caption]);
}

function graphPanel(title, drawing) {
  const caption = drawing.text ? [element("code", {}, drawing.text)] : [drawing.described.split(";")[0]];
  const made = panel(title, drawn(drawing, `${title}: ${drawing.described}`, answer.input.image), caption);
  if (drawing.nodes.some((node) => Object.keys(node.numbers).length)) made.append(nodeTable(drawing.nodes, title === "Truth"));
  return made;
}

function showPanels() {
  const { drawing, truth } = answer.candidates[chosen];
  const panels = [inputPanel(), graphPanel(chosen ? `Candidate ${chosen + 1}` : "Prediction", drawing)];
  if (truth) panels.push(graphPanel("Truth", truth));
  at("panels").replaceChildren(...panels);
  const marks = [["", "certain"], ["faint", "less certain"]];
  if (answer.candidates[chosen].edits) marks.push(["wrong", "differs from the truth"]);
  if (answer.candidates[chosen].edits && !drawing.svg) marks.push(["missing", "missing"]);
  if (answer.input.peaks?.some((peak) => peak.formula)) marks.push(["explained", "explained peak"]);
  const lines = marks.map(([kind, words]) => element("span", { class: `line ${kind}` }, words));
  // Colours of pictures speak for themselves.
  const labels = card.sliders ? [] : Object.entries(card.colors).map(([name, color]) => element("span", {}, dot(color), ` ${name}`));
  at("legend").replaceChildren(...lines, ...labels);
}

function showCandidates() {
  const items = answer.candidates.map((candidate, index) => {
    const tags = [];
    if (candidate.edits === 0) tags.push(element("span", { class: "good" }, "the truth"));
    if (candidate.edits) tags.push(element("span", { class: "bad" }, `${candidate.edits} ${candidate.edits === 1 ? "edit" : "edits"} from the truth`));
    if (candidate.checked !== null) tags.push(element("span", { class: candidate.checked ? "good" : "bad" }, candidate.checked ? "has the given fingerprint" : "another fingerprint"));
    const words = element("span", { class: "words" },
      candidate.drawing.text ? element("code", {}, candidate.drawing.text) : element("span", {}, candidate.drawing.described.split(";")[0]),
      element("span", { class: "tags" }, ...tags.flatMap((tag, place) => (place ? [" · ", tag] : [tag]))));
    const thumbnail = drawn(candidate.drawing, "", null);
    thumbnail.setAttribute("aria-hidden", "true");
    thumbnail.removeAttribute("role");
    const bar = element("meter", { min: 0, max: 1, value: candidate.probability, "aria-hidden": "true" });
    const button = element("button", { type: "button", class: "candidate", "aria-pressed": index === chosen ? "true" : "false" },
      element("span", { class: "rank" }, String(index + 1)), thumbnail, words, element("span", { class: "probability" }, percent(candidate.probability), bar));
    button.addEventListener("click", () => choose(index));
    return element("li", {}, button);
  });
  at("candidates").replaceChildren(...items);
  for (const id of ["order", "fewer"]) {
    at(id).textContent = answer[id] ? `${capital(answer[id])}.` : "";
    at(id).hidden = !answer[id];
  }
}

function choose(index) {
  chosen = index;
  showVerdict();
  showPanels();
  at("candidates").querySelectorAll("button").forEach((button, place) => button.setAttribute("aria-pressed", place === index ? "true" : "false"));
}

function showPlan() {
  at("plan-part").hidden = !answer.plan;
  if (!answer.plan) return;
  at("plan").replaceChildren(plan(answer.plan, card.colors, (words) => (at("plan-value").textContent = words)));
  at("plan-value").textContent = "Point at a cell, or walk through the plan with the arrow keys.";
}

// Choosing a model.

function choosePage(name) {
  card = cards.find((each) => each.name === name) ?? cards[0];
  at("model").value = card.name;
  history.replaceState(null, "", `#${encodeURIComponent(card.name)}`);
  at("summary").textContent = card.summary;
  at("standing").textContent = card.standing;
  at("limits").textContent = card.limits;
  at("scope").hidden = false;
  at("sliders").hidden = !card.sliders;
  if (card.sliders) setSliders(card.sliders);
  at("pasting").hidden = !card.takes_text;
  at("text-label").textContent = card.text_label;
  at("text-hint").textContent = card.takes_text ? `Paste ${card.takes_text}.` : "";
  at("text").classList.toggle("tall", card.adducts.length > 0);
  at("text").value = "";
  at("ion").hidden = !card.adducts.length;
  at("adduct").replaceChildren(element("option", { value: "" }, "unknown"), ...card.adducts.map((each) => element("option", { value: each }, each)));
  at("adduct").value = card.adducts[0] ?? "";
  at("file-hint").textContent = `Reads ${card.files}.`;
  at("file").value = "";
  const chips = card.examples.map((each) => chip(each.title, () => ((wanted = true), takeText(each.text))));
  chips.push(chip(card.unseen, nextExample));
  at("examples").replaceChildren(...chips);
  if (card.examples.length) takeText(card.examples[0].text);
  else askExample();
}

function chip(title, act) {
  const made = element("button", { type: "button" }, title);
  made.addEventListener("click", act);
  return made;
}

function takeText(text) {
  at("text").value = text;
  return askText();
}

function nextExample() {
  wanted = !card.sliders;
  number = Math.floor(Math.random() * 100_000);
  return askExample();
}

function setSliders({ least_regions, most_regions, noise, most_noise }) {
  Object.assign(at("regions"), { min: least_regions, max: most_regions, value: Math.min(7, most_regions) });
  Object.assign(at("noise"), { max: most_noise, value: noise });
  showSliders();
}

function showSliders() {
  at("regions-value").textContent = at("regions").value;
  at("noise-value").textContent = Number(at("noise").value).toFixed(2);
}

// What people do.

let soon = null;
for (const id of ["regions", "noise"]) {
  at(id).addEventListener("input", () => {
    showSliders();
    clearTimeout(soon);
    soon = setTimeout(askExample, 60);
  });
}
at("another-picture").addEventListener("click", nextExample);
at("model").addEventListener("change", () => choosePage(at("model").value));
at("row").addEventListener("change", () => again?.(Number(at("row").value)));
at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  wanted = true;
  if (card) askText();
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey || card?.one_line) && !event.shiftKey) {
    event.preventDefault();
    wanted = true;
    askText();
  }
});
at("file").addEventListener("change", () => askFile(at("file").files[0]));
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  if (card) askFile(event.dataTransfer.files[0]);
});
at("save").addEventListener("click", () => {
  const url = URL.createObjectURL(new Blob([JSON.stringify(answer, null, 2)], { type: "application/json" }));
  element("a", { href: url, download: `${answer.model}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
});
let width = innerWidth;
addEventListener("resize", () => {
  if (answer?.input.peaks && width !== innerWidth && !at("answer").hidden) showPanels();
  width = innerWidth;
});

async function begin() {
  try {
    cards = (await request("api/models")).body;
  } catch (error) {
    return fail(error.message);
  }
  const group = (origin, label) => {
    const mine = cards.filter((each) => each.origin === origin);
    const options = mine.map((each) => element("option", { value: each.name }, each.name));
    return mine.length ? [element("optgroup", { label }, ...options)] : [];
  };
  at("model").replaceChildren(...group("shipped", "Shipped models"), ...group("run", "Your runs"));
  at("model").disabled = false;
  choosePage([named(), FIRST].find((name) => cards.some((each) => each.name === name)) ?? cards[0].name);
}

/** The model in the address. */
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

begin();
