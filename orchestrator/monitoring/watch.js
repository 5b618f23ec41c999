// Draws the run's panels as SVG charts, and asks for new data while the run goes on.
const WIDTH = 420, HEIGHT = 170, LEFT = 52, RIGHT = 8, TOP = 8, BOTTOM = 22, SECONDS_BETWEEN = 2;
const COLOURS = 5;

const byId = (name) => document.getElementById(name);

function element(name, attributes, ...children) {
  const svg = ["svg", "path", "line", "text", "circle"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shown(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "percentunit") return (100 * value).toPrecision(3).replace(/\.0+$/, "") + " %";
  if (unit === "bytes") {
    const power = Math.min(4, Math.floor(Math.log10(Math.max(value, 1)) / 3));
    return (value / 1000 ** power).toPrecision(3) + " " + ["B", "kB", "MB", "GB", "TB"][power];
  }
  const size = Math.abs(value);
  const text = value === 0 ? "0"
    : size >= 1e6 || size < 1e-3 ? value.toExponential(1).replace("e+", "e")
    : Number.isInteger(value) ? value.toLocaleString("en-US") : Number(value.toPrecision(3)).toString();
  return text + (unit === "s" ? " s" : "");
}

function clock(seconds) {
  const whole = Math.round(seconds), minutes = Math.floor(whole / 60), two = (n) => String(n).padStart(2, "0");
  return minutes < 60 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

function ticks(low, high) {
  const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high * (1 + 1e-9); at++) found.push(at * step);
  return found;
}

function range(values) {
  let low = Math.min(...values), high = Math.max(...values);
  if (low === high) { low -= Math.abs(low) / 10; high += Math.abs(high) / 10 || 1; }
  return [low, high];
}

function chart(panel, end) {
  const positive = (value) => value !== null && (!panel.logarithmic || value > 0);
  const of = panel.logarithmic ? Math.log10 : (value) => value;
  const values = panel.series.flatMap((series) => series.points.map((point) => point[1]).filter(positive).map(of));
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": panel.title });
  if (!values.length) return svg;
  const [low, high] = range(values);
  const x = (seconds) => LEFT + (WIDTH - LEFT - RIGHT) * seconds / Math.max(end, 1e-9);
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (of(value) - low) / (high - low);
  for (const tick of ticks(low, high)) {
    const value = panel.logarithmic ? 10 ** tick : tick;
    svg.append(element("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    svg.append(element("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value, panel.unit)));
  }
  for (const [at, anchor] of [[0, "start"], [end / 2, "middle"], [end, "end"]])
    svg.append(element("text", { x: x(at), y: HEIGHT - 5, "text-anchor": anchor }, clock(at)));
  panel.series.forEach((series, number) => {
    const colour = `var(--series-${number % COLOURS})`;
    const points = series.points.filter((point) => positive(point[1]));
    const path = points.map(([at, value], index) => `${index ? "L" : "M"}${x(at).toFixed(1)},${y(value).toFixed(1)}`);
    if (!series.scattered) svg.append(element("path", { d: path.join(""), style: `stroke:${colour}` }));
    if (series.scattered || points.length < 40)
      for (const [at, value] of points)
        svg.append(element("circle", { cx: x(at), cy: y(value), r: 2, style: `fill:${colour}` }));
  });
  return svg;
}

function figure(panel, end) {
  const legend = panel.series.map((series, number) => {
    const last = series.points[series.points.length - 1][1];
    const mark = element("i", { style: `background:var(--series-${number % COLOURS})` });
    return element("span", {}, mark, `${series.name} ${shown(last, panel.unit)}`);
  });
  return element("figure", { title: panel.meaning },
    element("h2", {}, panel.title), chart(panel, end), element("figcaption", {}, ...legend));
}

function last(run, title, name) {
  const series = run.panels.find((panel) => panel.title === title)?.series.find((each) => each.name === name);
  return series ? series.points[series.points.length - 1][1] : null;
}

function draw(run) {
  const tiles = [
    ["validation loss", last(run, "Losses", "validation")],
    ["training loss", last(run, "Losses", "training")],
    ["learning rate", last(run, "Learning rate", "rate")],
    ["steps taken", last(run, "Steps", "steps taken")],
    ["steps left", last(run, "Steps", "steps left")],
    ["goodput", last(run, "Shares", "goodput"), "percentunit"],
  ];
  byId("title").replaceChildren(run.title, element("span", { class: `state ${run.state}` }, run.state));
  byId("facts").textContent = `${run.run} · worked on for ${clock(run.seconds)}`;
  byId("tiles").replaceChildren(...tiles.map(([name, value, unit]) =>
    element("div", { class: "tile" }, element("b", {}, shown(value, unit || "")), element("span", {}, name))));
  byId("charts").replaceChildren(...run.panels.map((panel) => figure(panel, run.seconds)));
}

async function refresh() {
  try {
    const run = await (await fetch("data.json")).json();
    draw(run);
    if (run.state !== "RUNNING") return;
  } catch {
    byId("facts").textContent = "the command that served this page has ended";
    return;
  }
  setTimeout(refresh, 1000 * SECONDS_BETWEEN);
}

draw(JSON.parse(byId("data").textContent));
if (LIVE) refresh();
