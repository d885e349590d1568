// Shows the graph of one module as SVG.

function makeGraph() {
  graph.place = picturePlace({class: "graph", role: "listbox"}, openGraph, boxKeys);
  graph.root = store.selection ? graphRootOf(store.selection) : store.tree.root;
  return [element("div", {id: "graph-path"}), graph.place];
}

function showGraph(follow) {
  const isSeen = graph.boxes.some(box => box.part === store.selection);
  if (store.selection && !isSeen && !isInside(store.selection, graph.root))
    graph.root = graphRootOf(store.selection);
  refill(byId("graph-path"), pathBar(graph.root, openGraph));
  graph.place.setAttribute(
    "aria-label",
    `Operators of ${graph.root.path || graph.root.name}; space opens a module, backspace what is around it`);
  const count = boxedChildren(graph.root).length;
  if (count > mostBoxes) {
    graph.boxes = [];
    graph.place.replaceChildren(element(
      "p", {class: "quiet"},
      `${counted(count, "part")} are too many for a picture that can be read. ` +
        "Choose a module inside, or use the table."));
    return;
  }
  const {boxes, edges} = graphOf(graph.root);
  for (const box of boxes)
    box.width = Math.max(118, 20 + 7.3 * boxLabel(box).length, 20 + 6.4 * boxNote(box).length);
  const size = layOut(boxes, edges);
  graph.boxes = boxes;
  graph.place.replaceChildren(shape(
    "svg", {
      width: size.width,
      height: size.height,
      viewBox: `0 0 ${size.width} ${size.height}`,
      role: "presentation"
    },
    edges.map(edgeElements), boxes.map(boxElement)));
  const chosen = boxes.find(box => box.part === store.selection);
  if (!chosen) return graph.place.removeAttribute("aria-activedescendant");
  graph.place.setAttribute("aria-activedescendant", chosen.id);
  if (follow) byId(chosen.id).scrollIntoView({block: "nearest", inline: "nearest"});
}
