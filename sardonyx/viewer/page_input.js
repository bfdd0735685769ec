"use strict";

/* Pointers and keys. */

function listenToView(view) {
  const { canvas, map } = view;
  const pointers = new Map();
  let moved = 0, apart = 0;
  const spot = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, spot(event));
    moved = apart = 0;
    view.events.active(view);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = spot(event);
    const before = pointers.get(event.pointerId);
    if (!before) return hover(view, x, y);
    pointers.set(event.pointerId, [x, y]);
    moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    if (pointers.size === 2) {
      const [first, second] = [...pointers.values()];
      const now = Math.hypot(first[0] - second[0], first[1] - second[1]);
      if (apart) view.zoom(now / apart, (first[0] + second[0]) / 2, (first[1] + second[1]) / 2);
      apart = now;
    } else if (moved > 3) {
      canvas.classList.add("dragging");
      view.moveBy(before[0] - x, before[1] - y);
    }
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("dragging");
    if (event.type === "pointerup" && moved <= 3) app.select(view, view.nodeAt(...spot(event)));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hover(view, -1, -1));
  canvas.addEventListener("dblclick", (event) => {
    const node = view.graph.nodes[view.nodeAt(...spot(event))];
    if (node && node.graphs) app.open(view, node.graphs[0][1]);
    else if (!node) view.zoom(1.6, ...spot(event));
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    const [x, y] = spot(event);
    if (event.shiftKey) view.moveBy(event.deltaY * unit || event.deltaX * unit, 0);
    else view.zoom(Math.exp(clamp(-event.deltaY * unit, -240, 240) * 0.0022), x, y);
  }, { passive: false });
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    view.jumpOnMap(event);
  });
  map.addEventListener("pointermove", (event) => {
    if (event.buttons) view.jumpOnMap(event);
  });
}

function hover(view, x, y) {
  const index = x < 0 ? -1 : view.nodeAt(x, y);
  view.canvas.classList.toggle("pointing", index >= 0);
  if (index !== view.hovered) {
    view.hovered = index;
    view.draw();
  }
  const node = view.graph.nodes[index];
  view.tip.hidden = !node;
  if (!node) return;
  const name = node.kind === OPERATION ? `${node.operator}  ${node.name || ""}` : node.name;
  const text = node.seconds === undefined ? name : `${name}  ${secondsText(node.seconds)}`;
  view.tip.textContent = text.length > 240 ? `${text.slice(0, 240)}…` : text;
  view.tip.style.left = `${clamp(x + 14, 0, Math.max(0, view.width - view.tip.offsetWidth - 8))}px`;
  view.tip.style.top = `${Math.min(y + 18, view.height - view.tip.offsetHeight - 8)}px`;
}

function listenToKeys() {
  const step = 90;
  const actions = {
    ArrowLeft: (view) => view.moveBy(-step, 0),
    ArrowRight: (view) => view.moveBy(step, 0),
    ArrowUp: (view) => view.moveBy(0, -step),
    ArrowDown: (view) => view.moveBy(0, step),
    PageUp: (view) => view.moveBy(0, 60 - view.height),
    PageDown: (view) => view.moveBy(0, view.height - 60),
    Home: (view) => view.start(),
    "+": (view) => view.zoom(1.25),
    "=": (view) => view.zoom(1.25),
    "-": (view) => view.zoom(0.8),
    f: (view) => view.fit(),
    p: () => app.foldPanel(),
    "/": () => { part("query").focus(); part("query").select(); },
    n: (view) => app.follow(view, 0),
    b: (view) => app.follow(view, 1),
    Backspace: (view) => app.leave(view),
    Escape: (view) => app.select(view, -1),
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    const pressing = event.target instanceof HTMLButtonElement && event.key === "Enter";
    if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action(app.current);
  });
}
