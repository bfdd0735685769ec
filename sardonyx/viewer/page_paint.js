"use strict";

/* Painting: edges below, boxes above, each in batches of one colour. */

let colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["page", "surface", "line", "text", "muted", "faint", "edge", "accent", "shade",
    "on-colour", "gone", "new", "changed", "cold", "hot", "port"];
  colours = {};
  for (const name of [...names, ...data.families.map((family) => family[0])]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

function mix(first, second, share) {
  const [a, b] = [channels(first), channels(second)];
  return `rgb(${a.map((number, at) => Math.round(number + (b[at] - number) * share)).join(",")})`;
}

const familyColour = (family) => colours[data.families[family][0]];

function nodeColour(view, node) {
  if (node.kind !== OPERATION) return colours.port;
  if (data.heat) {
    const share = Math.sqrt((node.seconds || 0) / view.hottest);
    return mix(colours.cold, colours.hot, Math.round(share * 24) / 24);
  }
  return familyColour(node.family);
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

function paintGraph(view) {
  const scale = view.camera.scale;
  const left = view.camera.x, top = view.camera.y;
  const right = left + view.width / scale, bottom = top + view.height / scale;
  const visible = inside(view.boxes, left, top, right, bottom, 0);
  const edges = inside(view.bounds, left, top, right, bottom, 24);
  paintEdges(view, edges);
  paintBoxes(view, visible);
  if (scale >= DETAIL.labels) paintLabels(view, edges);
  view.drawn = { nodes: visible.length, edges: edges.length };
}

/* The numbers of boxes, four coordinates each, that touch a rectangle widened by a margin. */
function inside(boxes, left, top, right, bottom, margin) {
  const found = [];
  for (let index = 0, at = 0; at < boxes.length; index += 1, at += 4) {
    const across = boxes[at + 2] >= left - margin && boxes[at] <= right + margin;
    const down = boxes[at + 3] >= top - margin && boxes[at + 1] <= bottom + margin;
    if (across && down) found.push(index);
  }
  return found;
}

/* Adds the way of an edge to the present path. */
function trace(view, edge) {
  const { context, camera } = view;
  const x = camera.x, y = camera.y;
  const last = edge.length - 2;
  const curves = camera.scale >= DETAIL.curves;
  let fromX = edge[4] - x, fromY = edge[5] - y;
  context.moveTo(fromX, fromY);
  const bend = (toX, toY) => {
    if (!curves || Math.abs(toX - fromX) < 0.5) context.lineTo(toX, toY);
    else {
      const half = (toY - fromY) / 2;
      context.bezierCurveTo(fromX, fromY + half, toX, toY - half, toX, toY);
    }
    [fromX, fromY] = [toX, toY];
  };
  for (let at = 6; at < last; at += 3) {
    bend(edge[at] - x, edge[at + 1] - y);
    fromY = edge[at + 2] - y;
    context.lineTo(fromX, fromY);
  }
  bend(edge[last] - x, edge[last + 1] - y);
}

function paintEdges(view, indices) {
  const { context, camera, graph } = view;
  const marked = view.selected >= 0 ? new Set(view.touching[view.selected]) : new Set();
  const least = 0.8 / camera.scale;
  const dashed = [], stubs = [];
  context.lineWidth = Math.max(1.2, 0.7 / camera.scale);
  context.strokeStyle = colours.edge;
  context.globalAlpha = camera.scale < DETAIL.edges ? 0.5 : 1;
  context.beginPath();
  for (const index of indices) {
    const edge = graph.edges[index];
    if (marked.has(index)) continue;
    if (edge[3] & FAR) stubs.push(edge);
    else if (edge[3] & CAPTURED) dashed.push(edge);
    else if (view.bounds[index * 4 + 3] - view.bounds[index * 4 + 1] > least) trace(view, edge);
  }
  context.stroke();
  context.globalAlpha = 1;
  if (dashed.length) {
    context.setLineDash([5, 4]);
    context.beginPath();
    dashed.forEach((edge) => trace(view, edge));
    context.stroke();
    context.setLineDash([]);
  }
  if (camera.scale > DETAIL.curves) paintStubs(view, stubs);
  if (marked.size) {
    context.strokeStyle = colours.accent;
    context.lineWidth = Math.max(2, 1.4 / camera.scale);
    context.beginPath();
    marked.forEach((index) => trace(view, graph.edges[index]));
    context.stroke();
  }
  if (camera.scale > 0.35) paintArrows(view, indices, marked);
}

/* Edges too long to follow: a short beginning and end, each with a ring. */
function paintStubs(view, edges) {
  const { context, camera } = view;
  const bottom = camera.y + view.height / camera.scale;
  const stub = (x, y, way) => {
    context.moveTo(x, y);
    context.lineTo(x, y + 10 * way);
    context.moveTo(x + 3, y + 13 * way);
    context.arc(x, y + 13 * way, 3, 0, 7);
  };
  context.beginPath();
  for (const [x, y] of view.starts) {
    if (y > camera.y - 20 && y < bottom) stub(x - camera.x, y - camera.y, 1);
  }
  for (const edge of edges) {
    const [x, y] = edge.slice(-2);
    stub(x - camera.x, y - camera.y, -1);
  }
  context.stroke();
}

function paintArrows(view, indices, marked) {
  const { context, camera, graph } = view;
  for (const accent of [false, true]) {
    context.fillStyle = accent ? colours.accent : colours.edge;
    context.beginPath();
    for (const index of indices) {
      if (marked.has(index) !== accent) continue;
      const edge = graph.edges[index];
      const x = edge[edge.length - 2] - camera.x, y = edge[edge.length - 1] - camera.y;
      const way = edge[edge.length - 1] >= edge[5] ? 1 : -1;
      context.moveTo(x, y);
      context.lineTo(x - 3.6, y - 6.5 * way);
      context.lineTo(x + 3.6, y - 6.5 * way);
    }
    context.fill();
  }
}

function paintLabels(view, indices) {
  const { context, camera, graph } = view;
  context.font = `10px ${FONT}`;
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = colours.page;
  context.fillStyle = colours.muted;
  for (const index of indices) {
    const edge = graph.edges[index];
    const text = view.labelled[index] ? view.labels[edge[2]] : "";
    if (!text) continue;
    const nextX = edge[6], nextY = edge[7];
    const share = 16 / Math.max(16, Math.abs(nextY - edge[5]));
    const bend = share * share * (3 - 2 * share);
    const x = edge[4] + (nextX - edge[4]) * bend - camera.x;
    const y = edge[5] + 16 * Math.sign(nextY - edge[5] || 1) - camera.y;
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }
}

function paintBoxes(view, indices) {
  const { context, camera, graph } = view;
  const detailed = camera.scale >= 0.22;
  const batches = new Map();
  for (const index of indices) {
    const node = graph.nodes[index];
    const colour = nodeColour(view, node);
    const dim = view.family >= 0 && node.family !== view.family;
    const key = dim ? `!${colour}` : colour;
    if (!batches.has(key)) batches.set(key, []);
    batches.get(key).push(index);
  }
  if (detailed) paintCards(view, indices);
  const least = 0.9 / camera.scale;
  for (const [key, group] of batches) {
    const dim = key[0] === "!";
    context.globalAlpha = dim ? 0.16 : 1;
    context.fillStyle = dim ? key.slice(1) : key;
    context.beginPath();
    for (const index of group) {
      const [x, y, width, height] = graph.nodes[index].box;
      addTitle(view, graph.nodes[index], x - camera.x, y - camera.y, Math.max(least, width),
        detailed ? 24 : Math.max(least, height), detailed);
    }
    context.fill();
  }
  context.globalAlpha = 1;
  if (data.sides.length > 1) paintStatus(view, indices);
  paintMarks(view);
  if (camera.scale >= DETAIL.text) paintTexts(view, indices);
}

function addTitle(view, node, x, y, width, height, detailed) {
  const { context } = view;
  if (!detailed) context.rect(x, y, width, height);
  else if (node.kind !== OPERATION) context.roundRect(x, y, width, node.box[3], 12);
  else context.roundRect(x, y, width, height, node.rows.length ? [6, 6, 0, 0] : 6);
}

function paintCards(view, indices) {
  const { context, camera, graph } = view;
  context.beginPath();
  for (const index of indices) {
    const node = graph.nodes[index];
    if (node.kind !== OPERATION || !node.rows.length) continue;
    const [x, y, width, height] = node.box;
    context.roundRect(x - camera.x, y - camera.y, width, height, 6);
  }
  context.fillStyle = colours.surface;
  context.fill();
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.stroke();
}

function paintStatus(view, indices) {
  const { context, camera, graph } = view;
  context.lineWidth = Math.max(3, 1.6 / camera.scale);
  for (const status of ["gone", "new", "changed"]) {
    context.strokeStyle = colours[status];
    context.beginPath();
    for (const index of indices) {
      const node = graph.nodes[index];
      if (node.status !== status) continue;
      const [x, y, width, height] = node.box;
      context.roundRect(x - camera.x - 2, y - camera.y - 2, width + 4, height + 4, 8);
    }
    context.stroke();
  }
}

function paintMarks(view) {
  const { context, camera, graph } = view;
  for (const [index, colour] of [[view.hovered, colours.faint], [view.selected, colours.accent]]) {
    if (index < 0) continue;
    const [x, y, width, height] = graph.nodes[index].box;
    const apart = Math.max(3, 3 / camera.scale);
    context.strokeStyle = colour;
    context.lineWidth = Math.max(2.5, 2 / camera.scale);
    context.beginPath();
    context.roundRect(x - camera.x - apart, y - camera.y - apart,
      width + 2 * apart, height + 2 * apart, 9);
    context.stroke();
  }
}

function paintTexts(view, indices) {
  const { context, camera, graph } = view;
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.font = `600 12.5px ${FONT}`;
  for (const index of indices) {
    const node = graph.nodes[index];
    const [x, y, width] = node.box;
    const light = data.heat && node.kind === OPERATION && (node.seconds || 0) < view.hottest * 0.3;
    context.fillStyle = light ? colours.text : colours["on-colour"];
    context.fillText(node.title, x + width / 2 - camera.x, y + 12.5 - camera.y, width - 8);
    if (node.graphs) context.fillText("⤢", x + width - 9 - camera.x, y + 12.5 - camera.y);
  }
  if (camera.scale < DETAIL.rows) return;
  context.font = `10.5px ${FONT}`;
  for (const index of indices) {
    const node = graph.nodes[index];
    const [x, y, width] = node.box;
    node.rows.forEach(([name, text], at) => {
      const line = y + 24 + 10 + at * 15 - camera.y;
      if (node.kind !== OPERATION) {
        context.textAlign = "center";
        context.fillStyle = colours["on-colour"];
        context.fillText(text, x + width / 2 - camera.x, line - 4, width - 12);
        return;
      }
      context.textAlign = "left";
      context.fillStyle = colours.muted;
      context.fillText(name, x + 9 - camera.x, line);
      context.textAlign = "right";
      context.fillStyle = colours.text;
      context.fillText(text, x + width - 9 - camera.x, line);
    });
  }
}
