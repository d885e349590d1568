// Switches between table, tree and graph.

const views = {
  table: {name: "Table", make: makeTable, show: showTable},
  tree: {name: "Tree", make: makeBlocks, show: showBlocks},
  graph: {name: "Graph", make: makeGraph, show: showGraph},
};
let shownView = "";

function setAll(open) {
  store.open = new Set([store.tree.root]);
  if (open)
    for (const part of store.tree.parts)
      if (part.kind === "module" && !part.joined) store.open.add(part);
  changed("view");
}

function showViewBar() {
  const size = element(
    "select",
    {id: "measure", "data-key": "measure", on: {change: event => choose("measure", event.target.value)}},
    Object.entries(measures).map(
      ([key, name]) => element("option", {value: key, selected: key === store.measure}, name)));
  refill(
    byId("view-bar"),
    element(
      "div", {class: "choices", role: "group", "aria-label": "View"},
      Object.entries(views).map(
        ([key, view]) =>
          button(view.name, () => choose("view", key), {"aria-pressed": String(store.view === key)}))),
    element("span", {}, element("label", {"for": "measure"}, "Size by "), size),
    store.view === "table" &&
      element(
        "span", {}, button("Unfold all", () => setAll(true), {class: "plain"}),
        button("Fold all", () => setAll(false), {class: "plain"})),
    element("small", {class: "hint"}, isReadOnly() ? "" : "Drag rows onto devices"));
}

/// `why`: the change of the store that makes it necessary.
function showView(why) {
  showViewBar();
  const place = byId("view");
  if (!isPlanned()) {
    shownView = "";
    place.replaceChildren(element(
      "div", {class: "empty"},
      element("p", {}, "There is no plan. Undo, or correct what is wrong and take the file over:"),
      element("ul", {class: "hints"}, store.state.problems.map(diagnosticItem))));
    return;
  }
  if (shownView !== store.view) {
    const hadFocus = place.contains(document.activeElement);
    shownView = store.view;
    place.onscroll = null;
    place.replaceChildren(...[views[shownView].make(place)].flat());
    if (hadFocus) place.querySelector("[data-key=view]").focus();
  }
  views[shownView].show(why === "selection");
}

function startViews() {
  listen(["state", "selection", "match", "view"], showView);
  addEventListener("resize", () => isPlanned() && shownView === "table" && paintRows());
}
