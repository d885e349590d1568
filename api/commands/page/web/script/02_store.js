// Holds what the page shows, with the listeners that show it.

const listeners = new Map();

const store = {
  model: null,      // GET /api/model: what never changes
  tree: null,       // its items as a tree (10_tree.js)
  state: null,      // GET /api/state: all that depends on the text of the policy
  totals: null,     // sums of the state over each part of the tree (11_totals.js)
  selection: null,  // a part of the tree
  match: null,      // what the search or a rule covers: { at, items: Set, text }
  open: new Set(),  // unfolded parts
  view: "table",
  tab: "step",
  measure: "ms",  // what sizes stand for: a key of `measures`
};

/// Calls `listener` after each change of one of these: "state", "selection", "match", "view", "tab".
function listen(names, listener) {
  for (const name of names) {
    if (!listeners.has(name)) listeners.set(name, []);
    listeners.get(name).push(listener);
  }
}

function changed(name) {
  for (const listener of listeners.get(name) || []) listener(name);
}

function choose(key, value) {
  store[key] = value;
  changed(key === "measure" ? "view" : key);
}

function select(part) {
  if (store.selection !== part) choose("selection", part);
}

const isReadOnly = () => store.model.read_only;
const isPlanned = () => Boolean(store.state && store.state.ok);
