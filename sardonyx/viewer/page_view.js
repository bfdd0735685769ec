"use strict";

/* One graph on a canvas: what is visible is drawn, in as much detail as can be seen. */

const LIMITS = { least: 0.0005, most: 4 };
const DETAIL = { text: 0.36, rows: 0.5, labels: 0.66, curves: 0.16, edges: 0.03 };
const FAR = 1, CAPTURED = 2;
const OPERATION = 0, INPUT = 1, OUTPUT = 2, CONSTANT = 3, OUTER = 4;

const clamp = (number, low, high) => Math.min(high, Math.max(low, number));

/* The type float[1,3,min(N, 9)] as the label 1×3×min(N, 9). */
function shapeLabel(type) {
  const found = /\[(.*)\]/.exec(type);
  if (!found) return "";
  if (found[1] === "") return "scalar";
  let depth = 0;
  return [...found[1]].map((letter) => {
    depth += (letter === "(") - (letter === ")");
    return letter === "," && !depth ? "×" : letter;
  }).join("");
}

class View {
  constructor(side, element, events) {
    this.side = side;
    this.events = events;
    this.element = element;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "graph";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.map = document.createElement("canvas");
    this.map.className = "map";
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    element.append(this.canvas, this.map, this.tip);
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.camera = { x: 0, y: 0, scale: 1 };
    this.cameras = new Map();
    this.graph = null;
    this.selected = -1;
    this.hovered = -1;
    this.family = -1;
    this.frame = 0;
    new ResizeObserver(() => this.resize()).observe(element);
    listenToView(this);
  }

  open(number) {
    if (this.graph) this.cameras.set(this.number, { ...this.camera });
    this.number = number;
    this.graph = this.side.graphs[number];
    this.selected = this.hovered = -1;
    const label = `graph ${this.graph.title}, ${this.graph.nodes.length} nodes`;
    this.canvas.setAttribute("aria-label", label);
    this.prepare();
    this.resize();
    const known = this.cameras.get(number);
    if (known) Object.assign(this.camera, known);
    else this.start();
    this.draw();
  }

  /* Typed arrays of all bounding boxes, so that a frame tests thousands of them in no time. */
  prepare() {
    const { nodes, edges } = this.graph;
    this.boxes = new Float64Array(nodes.length * 4);
    nodes.forEach((node, index) => {
      const [x, y, width, height] = node.box;
      this.boxes.set([x, y, x + width, y + height], index * 4);
    });
    this.bounds = new Float64Array(edges.length * 4);
    this.touching = nodes.map(() => []);
    this.labelled = new Uint8Array(edges.length);
    const seen = new Set(), starts = new Map();
    edges.forEach((edge, index) => {
      let left = Infinity, right = -Infinity;
      const last = edge.length - 2;
      for (let at = 4; at <= last; at += at === 4 ? 2 : 3) {
        left = Math.min(left, edge[at]);
        right = Math.max(right, edge[at]);
      }
      const low = Math.min(edge[5], edge[last + 1]), high = Math.max(edge[5], edge[last + 1]);
      this.bounds.set([left, low, right, high], index * 4);
      if (edge[3] & FAR) {
        const [x, y] = [edge[last], edge[last + 1]];
        this.bounds.set([x - 4, y - 18, x + 4, y], index * 4);
        starts.set(`${edge[4]} ${edge[5]}`, [edge[4], edge[5]]);
      }
      this.touching[edge[0]].push(index);
      if (edge[1] !== edge[0]) this.touching[edge[1]].push(index);
      if (!(edge[3] & FAR) && !seen.has(edge[2])) {
        seen.add(edge[2]);
        this.labelled[index] = 1;
      }
    });
    this.starts = [...starts.values()];
    this.labels = new Array(this.graph.values.length).fill("");
    edges.forEach((edge, index) => {
      if (!this.labelled[index]) return;
      const label = shapeLabel(this.graph.values[edge[2]][1]);
      const alone = this.touching[edge[1]].every((at) => at === index || edges[at][1] !== edge[1]);
      const room = Math.max(nodes[edge[0]].box[2], alone ? nodes[edge[1]].box[2] : 0) + 20;
      const most = Math.max(12, Math.floor(room / 5.6));
      this.labels[edge[2]] = label.length > most ? `${label.slice(0, most - 1)}…` : label;
    });
    this.hottest = nodes.reduce((most, node) => Math.max(most, node.seconds || 0), 1e-12);
  }

  get width() { return this.canvas.clientWidth; }
  get height() { return this.canvas.clientHeight; }

  resize() {
    if (!this.graph) return;
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(this.width * ratio), height = Math.round(this.height * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.prepareMap();
    this.paint();
  }

  fitScale() {
    const { width, height } = this.graph;
    const across = (this.width - 60) / Math.max(width, 1);
    return Math.min(across, (this.height - 60) / Math.max(height, 1));
  }

  fit() {
    const { width, height } = this.graph;
    this.show(width / 2, height / 2, clamp(this.fitScale(), LIMITS.least, 1.1));
  }

  /* A graph that would be unreadable as a whole opens at its first input. */
  start() {
    if (this.fitScale() > 0.55) return this.fit();
    const nodes = this.graph.nodes;
    let first = 0;
    for (let index = 1; index < nodes.length && nodes[0].kind !== INPUT; index++) {
      if (nodes[index].box[1] < nodes[first].box[1]) first = index;
    }
    const [x, y, width] = nodes.length ? nodes[first].box : [0, 0, 0];
    const scale = 0.9;
    this.show(x + width / 2, y + (this.height / 2 - 60) / scale, scale);
  }

  /* Put a point of the graph into the middle of the view. */
  show(x, y, scale = this.camera.scale) {
    this.camera.scale = clamp(scale, LIMITS.least, LIMITS.most);
    this.camera.x = x - this.width / 2 / this.camera.scale;
    this.camera.y = y - this.height / 2 / this.camera.scale;
    this.draw();
  }

  showNode(index) {
    const [x, y, width, height] = this.graph.nodes[index].box;
    this.show(x + width / 2, y + height / 2, Math.max(this.camera.scale, 0.9));
  }

  moveBy(x, y) {
    this.camera.x += x / this.camera.scale;
    this.camera.y += y / this.camera.scale;
    this.keepInside();
    this.draw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.camera.scale;
    const least = Math.max(LIMITS.least, Math.min(0.2, this.fitScale() * 0.5));
    this.camera.scale = clamp(before * factor, least, LIMITS.most);
    this.camera.x += x / before - x / this.camera.scale;
    this.camera.y += y / before - y / this.camera.scale;
    this.keepInside();
    this.draw();
  }

  keepInside() {
    const across = this.width / this.camera.scale, down = this.height / this.camera.scale;
    this.camera.x = clamp(this.camera.x, -across * 0.9, this.graph.width - across * 0.1);
    this.camera.y = clamp(this.camera.y, -down * 0.9, this.graph.height - down * 0.1);
  }

  select(index) {
    this.selected = index;
    this.draw();
  }

  nodeAt(x, y) {
    const at = this.camera.x + x / this.camera.scale, to = this.camera.y + y / this.camera.scale;
    const slack = 3 / this.camera.scale;
    let best = -1, least = Infinity;
    for (const index of inside(this.boxes, at, to, at, to, slack)) {
      const [x, y, width, height] = this.graph.nodes[index].box;
      const away = Math.abs(at - x - width / 2) + Math.abs(to - y - height / 2);
      if (away < least) [best, least] = [index, away];
    }
    return best;
  }

  draw() {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.paint();
      });
    }
  }

  paint() {
    const { context, camera } = this;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.page;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(camera.scale * ratio, 0, 0, camera.scale * ratio, 0, 0);
    paintGraph(this);
    this.paintMap();
    this.events.painted(this);
  }

  prepareMap() {
    const { width, height } = this.graph;
    const most = { width: 110, height: Math.max(60, Math.min(this.height - 20, 360)) };
    const cap = 0.14;
    this.mapScale = {
      x: Math.min(cap, (most.width - 12) / Math.max(width, 1)),
      y: Math.min(cap, (most.height - 12) / Math.max(height, 1)),
    };
    const ratio = window.devicePixelRatio || 1;
    const across = Math.max(26, width * this.mapScale.x + 12);
    const down = Math.max(26, height * this.mapScale.y + 12);
    this.map.style.width = `${across}px`;
    this.map.style.height = `${down}px`;
    this.map.width = Math.round(across * ratio);
    this.map.height = Math.round(down * ratio);
    this.picture = document.createElement("canvas");
    this.picture.width = this.map.width;
    this.picture.height = this.map.height;
    const context = this.picture.getContext("2d");
    context.scale(ratio, ratio);
    const byColour = new Map();
    this.graph.nodes.forEach((node) => {
      const colour = nodeColour(this, node);
      if (!byColour.has(colour)) byColour.set(colour, []);
      byColour.get(colour).push(node.box);
    });
    for (const [colour, boxes] of byColour) {
      context.fillStyle = colour;
      for (const [x, y, wide, high] of boxes) {
        context.fillRect(6 + x * this.mapScale.x, 6 + y * this.mapScale.y,
          Math.max(1, wide * this.mapScale.x), Math.max(1, high * this.mapScale.y));
      }
    }
  }

  paintMap() {
    const context = this.map.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.map.width, this.map.height);
    context.drawImage(this.picture, 0, 0);
    context.scale(ratio, ratio);
    const { x, y, scale } = this.camera;
    const across = this.map.width / ratio, down = this.map.height / ratio;
    const left = clamp(6 + x * this.mapScale.x, 1, across - 4);
    const top = clamp(6 + y * this.mapScale.y, 1, down - 4);
    const right = clamp(6 + (x + this.width / scale) * this.mapScale.x, left + 3, across - 1);
    const bottom = clamp(6 + (y + this.height / scale) * this.mapScale.y, top + 3, down - 1);
    context.fillStyle = colours.shade;
    context.fillRect(left, top, right - left, bottom - top);
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left, top, right - left, bottom - top);
  }

  jumpOnMap(event) {
    const frame = this.map.getBoundingClientRect();
    const x = (event.clientX - frame.left - 6) / this.mapScale.x;
    const y = (event.clientY - frame.top - 6) / this.mapScale.y;
    this.show(clamp(x, 0, this.graph.width), clamp(y, 0, this.graph.height));
  }
}
