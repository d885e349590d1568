// Keys that work anywhere on the page, with the list of all keys.

const keyList = [
  ["↑ ↓ ← →", "move, unfold and fold in the table; move in tree and graph"],
  ["Enter", "menu of what is selected: place it, clear it, explain it"],
  ["Space", "unfold in the table; open a module in tree and graph; Backspace: what is around it"],
  ["1 … 9", "place everything of the selection on the first … ninth device"],
  ["Delete", "take away the rule for exactly the selection"],
  ["e", "explain why the selection is where it is"],
  ["t r g", "table, tree, graph"],
  ["/", "search; Enter there shows the first match, Escape ends the search"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
  ["Ctrl+S", "difference to the file, then Save"],
  ["?", "these keys"],
];

function openHelp() {
  const dialog = byId("help");
  refill(
    dialog, element("h2", {id: "help-title"}, "Keys"),
    element(
      "p", {class: "quiet"},
      "Drag a module to the tile of a device to place it. The tile then shows four fields: drop it on one to place everything, or only its computing, its parameters or their optimizer state."),
    element(
      "table", {},
      element(
        "tbody", {},
        keyList.map(
          ([keys, text]) => element(
            "tr", {}, element("th", {scope: "row"}, element("kbd", {}, keys)), element("td", {}, text))))),
    element("div", {class: "bar"}, button("Close", () => dialog.close(), {class: "main"})));
  dialog.setAttribute("aria-labelledby", "help-title");
  if (!dialog.open) dialog.showModal();
}

const isTyping = target => target.matches("input[type=text], textarea, select");

function controlKeys(event) {
  const key = event.key.toLowerCase();
  if (isReadOnly() || (isTyping(event.target) && key !== "s")) return null;
  if (key === "z") return event.shiftKey ? redo : undo;
  return {y: redo, s: () => { reviewWhenDone(); }}[key];
}

function plainKeys(event) {
  const part = store.selection, device = devices()[Number(event.key) - 1];
  if (device && part && !isReadOnly() && isPlanned()) {
    const key = choicesOf(part).some(choice => choice.key === "on") ? "on" : choicesOf(part)[0].key;
    return () => place([part], {[key]: device.name});
  }
  const view = {t: "table", r: "tree", g: "graph"}[event.key];
  if (view)
    return () => {
      choose("view", view);
      document.querySelector("#view [data-key=view]").focus();
    };
  return {
    "/": () => byId("search").focus(),
    "?": openHelp,
    Escape: () => store.match && searchFor(""),
    e: () => part && isPlanned() && explain(part),
    Delete: () => part && !isReadOnly() && isPlanned() && clearPart(part)
  }[event.key];
}

function pageKeys(event) {
  if (
    event.defaultPrevented || event.altKey || document.querySelector("dialog[open]") || !byId("menu").hidden)
    return;
  const act = event.ctrlKey || event.metaKey ? controlKeys(event)
    : isTyping(event.target)                 ? null
                                             : plainKeys(event);
  if (!act) return;
  event.preventDefault();
  act();
}

/// To the row that is selected, so that the arrow keys work at once.
function goToModel() {
  if (!isPlanned()) return byId("view").focus();
  if (!store.selection) select(store.tree.root);
  document.querySelector("#view [data-key=view]").focus();
}

function startKeys() {
  document.querySelector(".skip").addEventListener("click", event => {
    event.preventDefault();
    goToModel();
  });
  addEventListener("keydown", pageKeys);
}
