// All copies between devices in a step, the largest first.

function copyTarget(path) {
  const part = store.tree.byPath.get(path);
  return part ? button(path, () => {
    reveal(shownAs(part));
    select(shownAs(part));
    changed("view");
  }, {class: "plain path", "data-key": `copy-${path}`}) : element("span", {class: "path"}, path);
}

function copyRow(copy) {
  const exposed = copy.exposed_ms > 0;
  return element(
    "tr", {},
    element(
      "td", {class: "number"}, bytesText(copy.bytes),
      copy.times > 1 && element("small", {}, ` × ${copy.times}`)),
    element("td", {}, deviceTag(copy.from), " → ", deviceTag(copy.to)), element("td", {}, copy.phase),
    element(
      "td", {}, element("i", {class: exposed ? "cross exposed" : "cross", "aria-hidden": "true"}),
      exposed ? `exposed ${msText(copy.exposed_ms)}` : "hidden"),
    element(
      "td", {class: "path"}, copyTarget(copy.producer), " → ",
      copy.consumers.map((path, i) => [i > 0 && ", ", copyTarget(path)])));
}

function showCopies(panel) {
  const {plan} = store.state;
  const copies = plan.transfers.filter(copy => !copy.scalar)
                   .sort((a, b) => b.bytes * (b.times || 1) - a.bytes * (a.times || 1));
  if (!copies.length)
    return refill(panel, element("p", {class: "quiet"}, "Nothing is copied between devices in a step."));
  refill(
    panel,
    element(
      "p", {class: "quiet"},
      `${copies.length} a step, ${bytesText(plan.traffic.bytes)}. Computing waits for exposed copies.`),
    tableOf(["size", "between", "phase", "", "from → to"], i => i === 0, copies.slice(0, 300).map(copyRow)),
    copies.length > 300 && element("p", {class: "quiet"}, `and ${copies.length - 300} smaller ones`));
}
