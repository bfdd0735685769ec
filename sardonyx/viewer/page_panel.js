"use strict";

/* The side panel: of the model, or of what is selected. Text only ever enters as text. */

function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== "") element.textContent = text;
  return element;
}

function button(className, text, action) {
  const element = make("button", className, text);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

function chip(colour) {
  const element = make("span", "chip");
  element.style.background = colour;
  return element;
}

function section(title, ...children) {
  const parts = children.flat().filter(Boolean);
  return parts.length ? [make("h3", "", title), ...parts] : [];
}

function pairs(rows) {
  if (!rows || !rows.length) return null;
  const list = make("dl");
  for (const [name, text, note, below] of rows) {
    const cell = make("dd");
    if (text instanceof Node) cell.append(text);
    else cell.textContent = text;
    if (note) cell.append(make("small", "", note));
    list.append(make("dt", "", name), cell);
    if (below) list.append(below);
  }
  return list;
}

function bytesText(count) {
  if (count < 1024) return `${count} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let number = count, unit = -1;
  while (number >= 1024 && unit < units.length - 1) { number /= 1024; unit += 1; }
  return `${number.toFixed(number < 10 ? 1 : 0)} ${units[unit]}`;
}

function secondsText(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toFixed(2)} ms`;
  return `${(seconds * 1e6).toFixed(1)} µs`;
}

function numberText(number) {
  return number === undefined ? "none" : String(Number(number.toPrecision(5)));
}

function row(colour, what, much, action) {
  const element = button("row", "", action);
  if (colour) element.append(chip(colour));
  element.append(make("span", "what", what), make("span", "much", much));
  element.title = what;
  return element;
}

/* A list that shows its first rows at once and the rest when asked. */
function longList(items, shown, makeRow) {
  const rows = items.slice(0, shown).map(makeRow);
  if (items.length > shown) {
    const rest = items.slice(shown, shown + 500);
    const more = button("link", `show ${rest.length} more of ${items.length}`, () => {
      more.replaceWith(...rest.map(makeRow));
    });
    rows.push(more);
  }
  return rows;
}

/* A text; of a long one the beginning, and the rest when asked. */
function prose(text) {
  if (!text) return null;
  const paragraph = make("p", "sub", text);
  if (text.length > 420) {
    paragraph.textContent = `${text.slice(0, 400)}… `;
    paragraph.append(button("link", "show all", () => { paragraph.textContent = text; }));
  }
  return paragraph;
}

const KEYS = [
  ["arrows", "move"],
  ["+  −", "zoom, as the wheel does"],
  ["f", "fit the whole graph"],
  ["/", "search"],
  ["n  b", "next or previous node along an edge"],
  ["Backspace", "back to the outer graph"],
  ["p", "show or hide this panel"],
  ["double click", "open what is inside a node"],
];

const numbered = (items) => items.map((item, index) => ({ item, index }));

function modelPanel(view) {
  const { side, graph } = view;
  const model = section("Model", pairs(side.about));
  const whole = graph.outer === null;
  return [
    make("h2", "", whole ? side.name || graph.title : graph.title),
    ...(whole ? model : []),
    ...section("About this graph", pairs(graph.metadata)),
    ...comparisonPart(view),
    ...slowestPart(view),
    ...endsPart(view, "Inputs", INPUT),
    ...endsPart(view, "Outputs", OUTPUT),
    ...rootsPart(view),
    ...operatorsPart(whole ? side.operators : operatorsOf(graph)),
    ...weightsPart(view),
    ...section("Documentation", prose(side.doc), prose(graph.doc)),
    ...(whole ? [] : model),
    ...section("Keys", pairs(KEYS)),
  ];
}

function endsPart(view, title, kind) {
  const { graph } = view;
  const ends = numbered(graph.nodes).filter(({ item }) => item.kind === kind);
  return section(title, longList(ends, 12, ({ item, index }) =>
    row("", item.name || "(unnamed)", graph.values[item.value][1],
      () => app.jump(view, view.number, index))));
}

function rootsPart(view) {
  const roots = numbered(view.side.graphs)
    .filter(({ item, index }) => index && item.outer === null);
  return section("Functions and other graphs", longList(roots, 12, ({ item, index }) =>
    row("", item.title, String(item.nodes.length), () => app.open(view, index))));
}

function operatorsPart(operators) {
  if (data.sides.length > 1) return [];
  return section("Operators", longList(operators, 14, ([name, family, count]) =>
    row(familyColour(family), name, String(count), () => app.search(name))));
}

function weightsPart(view) {
  const weights = numbered(view.side.weights).filter(({ item }) => item.bytes > 64)
    .sort((a, b) => b.item.bytes - a.item.bytes);
  return section("Largest weights", longList(weights, 10, ({ item, index }) =>
    row("", item.name || "(unnamed)", `${item.type}  ${bytesText(item.bytes)}`,
      () => app.jumpToWeight(view, index))));
}

function operatorsOf(graph) {
  const counts = new Map();
  for (const node of graph.nodes.filter(({ kind }) => kind === OPERATION)) {
    const entry = counts.get(node.operator) || [node.operator, node.family, 0];
    entry[2] += 1;
    counts.set(node.operator, entry);
  }
  return [...counts.values()].sort((a, b) => b[2] - a[2]);
}

/* Nodes of all graphs that fulfil a condition, with where they are. */
function nodesWhere(view, condition) {
  return view.side.graphs.flatMap((graph, number) => numbered(graph.nodes)
    .filter(({ item }) => condition(item))
    .map(({ item, index }) => ({ node: item, number, index })));
}

const fullName = (node) => (node.operator ? `${node.operator}  ${node.name || ""}` : node.name);

function comparisonPart(view) {
  if (data.sides.length < 2) return [];
  const differing = nodesWhere(view, (node) => node.status);
  const title = `Differences: ${differing.length}`;
  return [
    ...section(title, longList(differing, 12, ({ node, number, index }) =>
      row(colours[node.status], fullName(node), STATUS[node.status],
        () => app.jump(view, number, index)))),
    ...section(`Operators: ${sideNames().join(", ")}`, longList(operatorChanges(), 16, (change) => {
      const { name, family, numbers, more } = change;
      const sign = more === 0 ? "" : ` (${more > 0 ? "+" : "−"}${Math.abs(more)})`;
      return row(familyColour(family), name, `${numbers[0]} → ${numbers[1]}${sign}`,
        () => app.search(name));
    })),
  ];
}

/* What the two models are called where there is little room. */
function sideNames() {
  const names = data.sides.map((side) => side.name);
  return names.every((name) => name.length <= 16) ? names : ["left", "right"];
}

function operatorChanges() {
  const counts = new Map();
  data.sides.forEach((side, at) => side.operators.forEach(([name, family, count]) => {
    const entry = counts.get(name) || { name, family, numbers: [0, 0] };
    entry.numbers[at] += count;
    counts.set(name, entry);
  }));
  const changes = [...counts.values()];
  for (const change of changes) change.more = change.numbers[1] - change.numbers[0];
  return changes.sort((a, b) =>
    Math.abs(b.more) - Math.abs(a.more) || b.numbers[0] - a.numbers[0]);
}

function slowestPart(view) {
  if (!data.heat) return [];
  const timed = nodesWhere(view, (node) => node.seconds);
  const total = timed.reduce((sum, { node }) => sum + node.seconds, 0);
  timed.sort((a, b) => b.node.seconds - a.node.seconds);
  return section(`Slowest of ${secondsText(total)}`, longList(timed, 10, (entry) => {
    const { node, number, index } = entry;
    const share = `${(100 * node.seconds / total).toFixed(1)}%`;
    return row(familyColour(node.family), fullName(node), `${secondsText(node.seconds)}  ${share}`,
      () => app.jump(view, number, index));
  }));
}

function valueCell(view, number) {
  const [name, type] = view.graph.values[number];
  const cell = make("div");
  cell.append(button("link", name || "(unnamed)", () => app.jumpToValue(view, number)),
    make("span", "type", type || "type unknown"));
  return cell;
}

/* The card of the constant that a value holds, if it holds one. */
function cardOf(view, weight) {
  return weight === undefined ? null : weightCard(view.side.weights[weight]);
}

function weightCard(weight) {
  const card = make("div", "weight");
  const facts = [];
  if (weight.maker) facts.push(["made by", weight.maker]);
  facts.push(["size", bytesText(weight.bytes)]);
  if (weight.text) facts.push(["values", weight.text]);
  else if (weight.low !== undefined) {
    facts.push(["range", `${numberText(weight.low)} to ${numberText(weight.high)}`]);
    facts.push(["mean", `${numberText(weight.mean)} ± ${numberText(weight.deviation)}`]);
  }
  if (weight.zeros > 0) facts.push(["zeros", `${(100 * weight.zeros).toFixed(1)}%`]);
  if (weight.odd > 0) facts.push(["not finite", `${(100 * weight.odd).toFixed(2)}%`]);
  if (weight.fed) facts.push(["input", "a default: the model may be fed another"]);
  if (weight.sparse) facts.push(["sparse", "statistics of the stored values"]);
  if (weight.sampled) facts.push(["from", "a sample of the elements"]);
  if (weight.problem) facts.push(["not read", weight.problem]);
  if (weight.bins && weight.count > 6) card.append(histogram(weight));
  card.append(pairs(facts));
  return card;
}

function histogram(weight) {
  const canvas = make("canvas");
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [286, 54];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const step = width / weight.bins.length;
  context.fillStyle = colours.accent;
  weight.bins.forEach((share, index) => {
    const tall = share > 0 ? Math.max(1, share / 100 * (height - 4)) : 0;
    context.fillRect(index * step + 0.5, height - 1 - tall, step - 1, tall);
  });
  context.fillStyle = colours.line;
  context.fillRect(0, height - 1, width, 1);
  if (weight.low < 0 && weight.high > 0) {
    context.fillStyle = colours.faint;
    context.fillRect(width * -weight.low / (weight.high - weight.low), 0, 1, height);
  }
  canvas.title = `${numberText(weight.low)} to ${numberText(weight.high)}`;
  return canvas;
}

/* A constant that no node reads. */
function weightPanel(view, weight) {
  return [
    button("link", "‹ whole model", () => app.select(view, -1)),
    make("h2", "", weight.name || "(unnamed)"),
    make("p", "sub", "Constant that no node of a graph shown reads"),
    make("p", "type", weight.type),
    weightCard(weight),
  ];
}

const KINDS = [
  "", "Input of the graph", "Output of the graph", "Constant", "Value of an outer graph",
];
const STATUS = { gone: "only here", new: "only here", changed: "differs" };

/* Values of this graph that the graphs inside a node read. */
function captured(view, index) {
  const edges = view.touching[index].map((at) => view.graph.edges[at]);
  return edges.filter((edge) => edge[1] === index && edge[3] & CAPTURED).map((edge) => edge[2]);
}

function nodePanel(view, index) {
  const node = view.graph.nodes[index];
  const heading = make("h2");
  if (node.kind === OPERATION) heading.append(chip(familyColour(node.family)));
  heading.append(node.kind === OPERATION ? node.operator : node.name || "(unnamed)");
  if (node.status) {
    const badge = make("span", "badge", STATUS[node.status]);
    badge.style.background = colours[node.status];
    heading.append(badge);
  }
  if (node.kind !== OPERATION) return endPanel(view, node, heading);
  const attribute = ([name, text, type, weight]) => [name, text, type, cardOf(view, weight)];
  const argument = ([name, number]) => (number < 0 ? [name, "absent"]
    : [name, valueCell(view, number), "", cardOf(view, view.graph.values[number][2])]);
  const about = [];
  if (node.domain) about.push(["domain", node.domain]);
  if (node.seconds !== undefined) about.push(["time", secondsText(node.seconds)]);
  about.push(["family", data.families[node.family][1]]);
  return [
    button("link", "‹ whole model", () => app.select(view, -1)),
    heading,
    node.name ? make("p", "sub", node.name) : null,
    ...(node.graphs || []).map(([name, number]) =>
      button("open", `Open ${name}`, () => app.open(view, number))),
    prose(node.doc),
    ...section("Node", pairs(about)),
    ...section("Inputs", pairs((node.inputs || []).map(argument))),
    ...section("Read inside", pairs(captured(view, index).map((value) => argument(["", value])))),
    ...section("Outputs", pairs((node.outputs || []).map(argument))),
    ...section("Attributes", pairs((node.attributes || []).map(attribute))),
    ...section("Metadata", pairs(node.metadata)),
  ];
}

function endPanel(view, node, heading) {
  const edges = view.touching[view.selected].map((at) => view.graph.edges[at]);
  const end = node.kind === OUTPUT ? 0 : 1;
  const others = [...new Set(edges.map((edge) => edge[end]))];
  const outer = node.kind === OUTER && view.graph.outer !== null;
  return [
    button("link", "‹ whole model", () => app.select(view, -1)),
    heading,
    make("p", "sub", KINDS[node.kind]),
    prose(node.doc),
    outer ? button("open", "Show where it is made", () => app.jumpOutward(view, node.name)) : null,
    ...section("Value", valueCell(view, node.value),
      cardOf(view, view.graph.values[node.value][2])),
    ...section(node.kind === OUTPUT ? "Made by" : "Read by", longList(others, 20, (index) => {
      const other = view.graph.nodes[index];
      const colour = other.kind === OPERATION ? familyColour(other.family) : "";
      return row(colour, fullName(other), "", () => app.jump(view, view.number, index));
    })),
    ...section("Metadata", pairs(node.metadata)),
  ];
}
