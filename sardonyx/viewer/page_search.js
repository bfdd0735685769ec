"use strict";

/* Search: operators, names of nodes, and names of the values they make or hold. */

const SHOWN_MATCHES = 100;
const search = { found: [], choice: 0 };

/* What a node can be found by: [word, how the result reads, where it is]. */
function* wordsOf(side, graph, node, where) {
  if (node.kind !== OPERATION) {
    yield [node.name, node.name || "(unnamed)", `${KINDS[node.kind]} ${where}`];
    return;
  }
  const full = fullName(node);
  yield [node.operator, full, where];
  if (node.name) yield [node.name, full, where];
  for (const [, value] of node.outputs || []) {
    yield [graph.values[value][0], graph.values[value][0], `made by ${full}`];
  }
  for (const [, value] of node.inputs || []) {
    if (value < 0 || graph.values[value][2] === undefined) continue;
    const [name, , weight] = graph.values[value], { maker } = side.weights[weight];
    yield [name, name, `read by ${full}`];
    if (maker) yield [maker, maker, `read by ${full}`];
  }
}

/* Every node that a text is in, once; those that are it or begin with it come first. */
function matches(text) {
  const wanted = text.trim().toLowerCase();
  const found = [];
  if (!wanted) return found;
  for (const view of app.views) {
    const side = app.views.length > 1 ? `${view.side.name}  ` : "";
    view.side.graphs.forEach((graph, number) => graph.nodes.forEach((node, index) => {
      const place = number ? graph.title : "";
      for (const [word, what, where] of wordsOf(view.side, graph, node, place)) {
        const at = word.toLowerCase().indexOf(wanted);
        if (at < 0) continue;
        const rank = word.length === wanted.length ? 0 : at === 0 ? 1 : 2;
        found.push({ rank, view, number, index, what, where: `${side}${where}`.trim() });
        return;
      }
    }));
  }
  return found.sort((a, b) => a.rank - b.rank);
}

function showMatches(text) {
  search.found = matches(text);
  search.choice = 0;
  const rows = search.found.slice(0, SHOWN_MATCHES).map((match, at) => {
    const item = make("li", "", match.what);
    if (match.where) item.append(make("small", "", match.where));
    item.setAttribute("aria-selected", String(at === 0));
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      take(at);
    });
    return item;
  });
  if (!rows.length) rows.push(make("li", "note", "nothing found"));
  else if (rows.length < search.found.length) {
    rows.push(make("li", "note", `${search.found.length} in all`));
  }
  part("results").replaceChildren(...rows);
  part("results").hidden = !text.trim();
}

function take(at) {
  const match = search.found[at];
  if (!match) return;
  part("query").blur();
  app.jump(match.view, match.number, match.index);
}

function searchKey(event) {
  if (event.key === "Enter") take(search.choice);
  if (event.key === "Escape") {
    part("query").blur();
    app.current.canvas.focus({ preventScroll: true });
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const rows = [...part("results").children];
  const last = Math.min(SHOWN_MATCHES, search.found.length) - 1;
  search.choice = clamp(search.choice + step, 0, Math.max(0, last));
  rows.forEach((item, at) => item.setAttribute("aria-selected", String(at === search.choice)));
  if (rows[search.choice]) rows[search.choice].scrollIntoView({ block: "nearest" });
}
