"use strict";

/* The page as a whole: views side by side, the trail of graphs, search, legend. */

const data = JSON.parse(document.getElementById("data").textContent);
const part = (id) => document.getElementById(id);

const makes = (node, value) => (node.outputs || []).some((output) => output[1] === value);
const reads = (node, value) => (node.inputs || []).some((input) => input[1] === value);

const app = {
  views: [],
  current: null,

  start() {
    readColours();
    for (const side of data.sides) {
      const element = make("div", "view");
      part("views").append(element);
      const view = new View(side, element, { active: (v) => app.activate(v), painted });
      if (data.sides.length > 1) element.append(make("div", "name", side.name));
      this.views.push(view);
    }
    this.current = this.views[0];
    this.views.forEach((view) => view.side.graphs.length && view.open(0));
    this.refresh();
    this.legend();
    this.tools();
    listenToKeys();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      readColours();
      this.views.forEach((view) => view.resize());
      this.refresh();
      this.legend();
    });
  },

  tools() {
    part("fit").addEventListener("click", () => this.current.fit());
    part("larger").addEventListener("click", () => this.current.zoom(1.25));
    part("smaller").addEventListener("click", () => this.current.zoom(0.8));
    part("fold").addEventListener("click", () => this.foldPanel());
    part("query").addEventListener("input", () => showMatches(part("query").value));
    part("query").addEventListener("focus", () => showMatches(part("query").value));
    part("query").addEventListener("blur", () => { part("results").hidden = true; });
    part("query").addEventListener("keydown", searchKey);
    if (window.innerWidth < 820) part("panel").hidden = true;
  },

  activate(view) {
    if (this.current === view) return;
    this.current = view;
    this.refresh();
  },

  foldPanel() { part("panel").hidden = !part("panel").hidden; },

  open(view, number) {
    this.current = view;
    view.open(number);
    this.refresh();
  },

  leave(view) {
    if (view.graph.outer !== null) this.open(view, view.graph.outer);
  },

  select(view, index, twin = true) {
    this.current = view;
    view.select(index);
    if (twin) this.selectTwin(view, index);
    this.refresh();
  },

  /* In a comparison, what the other model has in the same place. */
  selectTwin(view, index) {
    const other = this.views.find((item) => item !== view);
    const node = view.graph.nodes[index];
    if (!other) return;
    if (!node || node.twin === undefined) return other.select(-1);
    const [number, at] = node.twin;
    if (other.number !== number) other.open(number);
    other.select(at);
    other.showNode(at);
  },

  jump(view, number, index) {
    if (view.number !== number) view.open(number);
    this.select(view, index);
    view.showNode(index);
    view.canvas.focus({ preventScroll: true });
  },

  /* To what makes a value, or from there to what reads it. */
  jumpToValue(view, number) {
    const { nodes, edges } = view.graph;
    const edge = edges.find((item) => item[2] === number);
    const made = nodes.findIndex((node) => makes(node, number));
    const source = made >= 0 ? made : edge ? edge[0] : -1;
    const reader = edge ? edge[1] : nodes.findIndex((node) => reads(node, number));
    const index = source >= 0 && source !== view.selected ? source : reader;
    if (index >= 0) this.jump(view, view.number, index);
  },

  jumpToWeight(view, weight) {
    for (const [number, graph] of view.side.graphs.entries()) {
      const value = graph.values.findIndex((item) => item[2] === weight);
      const holds = (node) => (node.attributes || []).some((item) => item[3] === weight);
      const index = graph.nodes.findIndex((node) =>
        (value >= 0 && (reads(node, value) || node.value === value)) || holds(node));
      if (index >= 0) return this.jump(view, number, index);
    }
    return part("panel").replaceChildren(...weightPanel(view, view.side.weights[weight]));
  },

  jumpOutward(view, name) {
    const { graphs } = view.side;
    for (let number = view.graph.outer; number !== null; number = graphs[number].outer) {
      const value = graphs[number].values.findIndex((item) => item[0] === name);
      const index = graphs[number].nodes.findIndex((node) =>
        (node.kind === INPUT && node.name === name) || makes(node, value));
      if (index >= 0) return this.jump(view, number, index);
    }
  },

  /* Step along an edge: 0 to what reads the selected node, 1 to what it reads. */
  follow(view, end) {
    const edge = (view.touching[view.selected] || []).map((at) => view.graph.edges[at])
      .find((item) => item[end] === view.selected);
    if (edge) this.jump(view, view.number, edge[1 - end]);
  },

  refresh() {
    const view = this.current;
    if (!view.graph) return;
    const chain = [], { graphs } = view.side;
    for (let at = view.number; at !== null; at = graphs[at].outer) chain.unshift(at);
    const parts = chain.flatMap((number, at) => {
      const graph = graphs[number];
      const title = graph.owner ? `${graph.owner} : ${graph.title}` : graph.title;
      const step = button("", title, () => number !== view.number && this.open(view, number));
      step.title = title;
      return at ? [make("span", "", "›"), step] : [step];
    });
    part("trail").replaceChildren(...parts);
    const content = view.selected >= 0 ? nodePanel(view, view.selected) : modelPanel(view);
    part("panel").replaceChildren(...content.filter(Boolean));
    part("panel").scrollTop = 0;
  },

  legend() {
    const used = new Set();
    for (const graph of data.sides.flatMap((side) => side.graphs)) {
      graph.nodes.forEach((node) => used.add(node.family));
    }
    const families = numbered(data.families).filter(({ index }) => used.has(index));
    const entries = families.map(({ item: [key, title], index }) => {
      const entry = button("", "", () => this.highlight(index));
      const mark = make("i");
      mark.style.background = colours[key];
      entry.append(mark, title);
      entry.setAttribute("aria-pressed", String(this.current.family === index));
      return entry;
    });
    const extra = [];
    if (data.heat) {
      const heat = make("span", "key");
      heat.append("fast", make("span", "scale"), "slow");
      extra.push(heat);
    }
    const [left, right] = sideNames();
    const statuses = { gone: `only ${left}`, new: `only ${right}`, changed: "differs" };
    for (const [status, title] of data.sides.length > 1 ? Object.entries(statuses) : []) {
      const key = make("span", "key");
      const mark = make("i");
      mark.style.background = colours[status];
      key.append(mark, title);
      extra.push(key);
    }
    const hint = "arrows move · + − zoom · f fit · / search · n b follow edges";
    part("legend").replaceChildren(...extra, ...entries, make("span", "hint", hint));
  },

  highlight(family) {
    const next = this.current.family === family ? -1 : family;
    this.views.forEach((view) => {
      view.family = next;
      view.draw();
    });
    this.legend();
  },

  search(text) {
    part("query").value = text;
    part("query").focus();
    showMatches(text);
  },
};

/* The first frame with a graph in it is marked, for whoever measures. */
function painted() {
  if (!document.documentElement.dataset.painted) {
    document.documentElement.dataset.painted = String(Math.round(performance.now()));
    performance.mark("graph-painted");
  }
}

app.start();
