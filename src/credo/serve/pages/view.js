"use strict";
// The state of a model comes once a second as server-sent events; nothing is asked of another host.
const name = decodeURIComponent(location.pathname.split("/").pop());
const at = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const pace = [];
let last = null;

document.title = name + " · credo serve";
at("name").textContent = name;

function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  return Number.isInteger(value) ? value.toLocaleString("en") : Number(value).toPrecision(digits);
}

function share(weight) {
  return weight > 0 && weight < 0.001 ? "< 0.1%" : (100 * weight).toFixed(1) + "%";
}

function shape(kind, marks, text) {
  const one = document.createElementNS(SVG, kind);
  for (const [key, value] of Object.entries(marks)) one.setAttribute(key, value);
  if (text !== undefined) one.textContent = text;
  return one;
}

function chart(place, lines, marks, unit, floor) {
  const width = Math.max(place.clientWidth, 240), height = 200, left = 46, low = 22; // texts keep their size
  const points = lines.flatMap((line) => line.points).filter((p) => p[1] !== null && Number.isFinite(p[1]));
  if (!points.length) { const words = document.createElement("p"); words.textContent = "nothing yet"; place.replaceChildren(words); return; }
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]).sort((a, b) => a - b);
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1);
  let y0 = ys[0], y1 = ys[Math.floor((ys.length - 1) * 0.99)];
  if (floor !== undefined) { y0 = floor; y1 = Math.max(ys[ys.length - 1], floor + 1); }
  if (y1 - y0 < 1e-9) { y0 -= 0.5; y1 += 0.5; }
  const px = (x) => left + (x - x0) / (x1 - x0) * (width - left - 8);
  const py = (y) => 8 + (y1 - Math.min(Math.max(y, y0), y1)) / (y1 - y0) * (height - low - 8);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": place.id });
  svg.append(shape("line", { class: "axis", x1: left, x2: width, y1: height - low, y2: height - low }));
  for (const y of [y0, y1]) svg.append(shape("text", { x: 2, y: py(y) + 4 }, number(y)));
  svg.append(shape("text", { x: left, y: height - 6 }, `${unit} ${number(x0)}`));
  svg.append(shape("text", { x: width - 4, y: height - 6, "text-anchor": "end" }, number(x1)));
  for (const x of marks) if (x >= x0 && x <= x1) svg.append(shape("line", { class: "alarm", x1: px(x), x2: px(x), y1: 8, y2: height - low }));
  for (const line of lines) {
    const there = line.points.filter((p) => p[1] !== null && Number.isFinite(p[1]));
    svg.append(shape("polyline", { class: line.kind, points: there.map((p) => `${px(p[0]).toFixed(1)},${py(p[1]).toFixed(1)}`).join(" ") }));
  }
  place.replaceChildren(svg);
}

function tile(words, value) {
  const box = document.createElement("div"), big = document.createElement("b"), small = document.createElement("span");
  box.className = "tile"; big.textContent = value; small.textContent = words;
  box.append(big, small);
  return box;
}

function show(model) {
  const state = model.state || {}, now = performance.now() / 1000;
  at("stage").textContent = model.reason ? `${model.stage}: ${model.reason}` : model.stage;
  const taken = model.taken;
  if (last) pace.push([pace.length ? pace[pace.length - 1][0] + 1 : 0, (taken - last[1]) / Math.max(now - last[0], 0.1)]);
  last = [now, taken];
  if (pace.length > 300) pace.shift();
  const bandit = state.task === "bandit";
  const tiles = bandit ? [] : [tile("rows learned", number(state.rows ?? model.learned)), tile("forecasts", number(model.forecasts)), tile("rows refused", number(state.refused ?? 0))];
  for (const [key, value] of Object.entries(state.metrics || {})) tiles.push(tile(key.replaceAll("_", " "), number(value)));
  for (const [key, value] of Object.entries(state.baseline || {})) tiles.push(tile("baseline " + key, number(value)));
  for (const [key, value] of Object.entries(state.counts || {})) if (value || ["decisions", "pending", "learned"].includes(key)) tiles.push(tile(key, number(value)));
  if (model.challenger) tiles.push(tile("challenger", model.challenger.stage), tile("its nlpd", number((((model.challenger.state || {}).metrics) || {}).nlpd)));
  if (state.changes !== undefined) tiles.push(tile("reported changes", number(state.changes)));
  at("tiles").replaceChildren(...tiles);
  const curve = state.curve || { rows: [], nlpd: [], baseline: [] };
  const beside = ((model.challenger || {}).state || {}).curve || { rows: [], nlpd: [] };
  const rival = beside.rows.map((row, place) => [row, beside.nlpd[place]]);
  const along = (values) => curve.rows.map((row, place) => [row, values[place]]);
  chart(at("loss"), [{ kind: "base", points: along(curve.baseline) }, { kind: "ours", points: along(curve.nlpd) }, { kind: "other", points: rival }], state.change_rows || [], "row");
  at("rival").hidden = !model.challenger;
  at("scores").hidden = bandit;
  chart(at("pace"), [{ kind: "ours", points: pace }], [], "second", 0);
  const weights = Object.entries(state.weights || {}).sort((a, b) => b[1] - a[1]).slice(0, 12);
  at("mixing").hidden = !weights.length;
  at("weights").replaceChildren(...weights.map(([member, weight]) => {
    const bar = document.createElement("div"), words = document.createElement("span"), meter = document.createElement("meter"), part = document.createElement("span");
    bar.className = "bar"; words.textContent = member; meter.value = weight; part.textContent = share(weight);
    bar.append(words, meter, part);
    return bar;
  }));
  const notes = [...(state.sentences || []), ...(model.notes || [])];
  at("told").hidden = !notes.length;
  at("notes").replaceChildren(...notes.map((note) => { const one = document.createElement("li"); one.textContent = note; return one; }));
}

async function listen(token) {
  const headers = token ? { Authorization: "Bearer " + token } : {};
  const answer = await fetch(`/v1/models/${encodeURIComponent(name)}/events`, { headers });
  if (answer.status === 401 || answer.status === 403) { at("ask").hidden = false; at("stage").textContent = "a token is needed"; return false; }
  if (!answer.ok) { at("stage").textContent = (await answer.json()).detail; return false; }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return true;
    rest += value;
    const parts = rest.split(/\r?\n\r?\n/);
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      if (data) show(JSON.parse(data));
    }
  }
}

async function keep(token) {
  for (;;) {
    try { if (!await listen(token)) return; } catch { /* the service is away: ask again */ }
    at("stage").textContent = "away; asking again";
    await new Promise((done) => setTimeout(done, 2000));
  }
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = at("token").value;
  sessionStorage.setItem("credo-token", token);
  at("ask").hidden = true;
  keep(token);
});

keep(sessionStorage.getItem("credo-token"));
