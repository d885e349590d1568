// The graph of one module: its operators and modules as boxes, with what is right outside of it.

const mostBoxes = 250;
const graph = {
  root: null,
  boxes: [],
  place: null
};

/// A part whose operators can be drawn: a module of several.
const graphRootOf = part => part.kind === "module" && !part.joined ? part : graphRootOf(shownAs(part).parent);

const boxedChildren = root => root.children.filter(child => !isStored(child));

/// The box of `root` that an operator lies in, or one for what is outside.
function boxOf(part, root, inner, outer) {
  let at = part;
  while (at && at.parent && !isInside(root, at.parent)) at = at.parent;
  if (at && at.parent === root) return inner.get(at);
  if (!outer.has(at)) outer.set(at, {part: at, isOutside: true});
  return outer.get(at);
}

/// Boxes in the order of the model, and edges with the copies that cross them.
function graphOf(root) {
  const inner = new Map(boxedChildren(root).map(part => [part, {part}]));
  const before = new Map(), after = new Map(), edges = new Map();
  const edgeOf = (from, to) => {
    const key = `${from.part.id}-${to.part.id}`;
    if (!edges.has(key)) edges.set(key, {from, to, copies: []});
    return edges.get(key);
  };
  const copies = new Map();
  for (const copy of store.state.plan.transfers) {
    const maker = store.tree.byPath.get(copy.producer);
    for (const path of maker && !copy.scalar ? copy.consumers : []) {
      const reader = store.tree.byPath.get(path);
      if (reader)
        copies.set(`${maker.id}-${reader.id}`, [...(copies.get(`${maker.id}-${reader.id}`) || []), copy]);
    }
  }
  for (const reader of store.tree.root.inside) {
    for (const id of reader.from || []) {
      const maker = store.tree.parts[id], fromInside = isInside(maker, root),
            toInside = isInside(reader, root);
      if (!fromInside && !toInside) continue;
      const from = boxOf(maker, root, inner, before), to = boxOf(reader, root, inner, after);
      if (from === to) continue;
      const edge = edgeOf(from, to);
      for (const key of [`${maker.id}-${reader.id}`, `${reader.id}-${maker.id}`])
        edge.copies.push(...(copies.get(key) || []));
    }
  }
  const boxes = [...before.values(), ...inner.values(), ...after.values()];
  boxes.forEach((box, i) => { box.id = `box-${i}`; });
  const order = new Map(boxes.map((box, i) => [box, i]));
  // Modules may feed each other both ways: edges against the order are not drawn in the layers.
  return {boxes, edges: [...edges.values()].filter(edge => order.get(edge.from) < order.get(edge.to))};
}

function edgePath(edge) {
  const points = edge.line.map(box => [box.x, box.isBend ? [box.y, box.y + boxHeight] : null, box]);
  let text = "", [x, y] = [edge.from.x, edge.from.y + boxHeight];
  text = `M${x} ${y}`;
  for (const [nextX, bend, box] of points.slice(1)) {
    const top = bend ? bend[0] : box.y, middle = (y + top) / 2;
    text += `C${x} ${middle} ${nextX} ${middle} ${nextX} ${top}`;
    if (bend) text += `L${nextX} ${bend[1]}`;
    [x, y] = [nextX, bend ? bend[1] : top];
  }
  return text;
}

function edgeElements(edge) {
  const bytes = bytesOfCopies(edge.copies), exposed = exposedOfCopies(edge.copies);
  const kind = !bytes ? "edge" : exposed > 0 ? "edge copied exposed" : "edge copied";
  const drawn = [shape("path", {class: kind, d: edgePath(edge)})];
  if (bytes) {
    const [a, b] = [edge.line[0], edge.line[1]];
    drawn.push(shape(
      "text", {
        class: exposed > 0 ? "copy-label exposed" : "copy-label",
        x: (a.x + b.x) / 2 + 7,
        y: (a.y + boxHeight + b.y) / 2 + 4
      },
      `${bytesText(bytes)}, ${exposed > 0 ? "exposed" : "hidden"}`));
  }
  return drawn;
}

const shorten = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

const boxLabel = ({part, isOutside}) => shorten(isOutside ? part.path || part.name : part.name, 27);

function boxNote({part, isOutside}) {
  if (isOutside) return "outside";
  const totals = totalsAt(part), count = part.inside.filter(one => !isStored(one)).length;
  const size = store.measure === "ms" ? msText(totals.sum.ms) : bytesText(totals.sum[store.measure]);
  return `${shorten(typeText(part) || counted(count, "operator"), 27)}, ${size}`;
}

function boxElement(box) {
  const {part} = box, totals = totalsAt(part), selected = store.selection === part;
  const left = box.x - box.width / 2;
  const classes = [
    "box", box.isOutside && "outside", part.kind === "module" && !part.joined && "module",
    selected && "is-selected", matchOf(part).whole && "is-match"
  ].filter(Boolean).join(" ");
  let at = left;
  const stripes = [...totals.run].map(([device, count]) => {
    const width = box.width * count / [...totals.run.values()].reduce((sum, one) => sum + one, 0);
    at += width;
    return shape("rect", {
      class: "stripe",
      x: at - width,
      y: box.y + boxHeight - 4,
      width,
      height: 4,
      style: {fill: deviceColour(device)}
    });
  });
  return shape(
    "g",
    {role: "option", id: box.id, class: classes, "data-item": part.id, "aria-selected": String(selected)},
    shape(
      "title", {},
      `${part.path || part.name}: ${boxNote(box)}, on ${devicesText(totals.run) || "no device"}`),
    shape("rect", {class: "frame", x: left, y: box.y, width: box.width, height: boxHeight, rx: 4}), stripes,
    shape("text", {class: "name", x: left + 9, y: box.y + 16}, boxLabel(box)),
    shape("text", {class: "note", x: left + 9, y: box.y + 30}, boxNote(box)));
}

function boxKeys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const box = graph.boxes.find(one => one.part === store.selection) || graph.boxes[0];
  if (!box) return;
  const nearest = boxes => boxes.sort((a, b) => Math.abs(a.x - box.x) - Math.abs(b.x - box.x))[0];
  const layer = graph.boxes.filter(one => one.layer === box.layer).sort((a, b) => a.x - b.x);
  const to = {
    ArrowUp: () => nearest(graph.boxes.filter(one => one.layer === box.layer - 1)),
    ArrowDown: () => nearest(graph.boxes.filter(one => one.layer === box.layer + 1)),
    ArrowLeft: () => layer[layer.indexOf(box) - 1],
    ArrowRight: () => layer[layer.indexOf(box) + 1],
    Home: () => graph.boxes[0],
    End: () => graph.boxes[graph.boxes.length - 1]
  }[event.key];
  if (to) {
    const next = to();
    if (next) select(next.part);
  } else if (event.key === "Enter" || event.key === "ContextMenu") {
    const frame = (byId(box.id) || graph.place).getBoundingClientRect();
    openMenu(box.part, frame.left + 8, frame.bottom, graph.place);
  } else if (event.key === " ") {
    openGraph(box.part);
  } else if (event.key === "Backspace") {
    if (graph.root.parent) openGraph(graph.root.parent);
  } else {
    return;
  }
  event.preventDefault();
}

function openGraph(part) {
  graph.root = graphRootOf(part);
  changed("view");
}
