// Which rows of the tree are in sight, and how much of each a search matches.

/// Unfolded parts, in the order of the model.
function visibleRows() {
  const rows = [];
  const add = part => {
    rows.push(part);
    if (store.open.has(part)) part.children.forEach(add);
  };
  add(store.tree.root);
  return rows;
}

const folds = part => part.children.length > 0;

function toggle(part, open = !store.open.has(part)) {
  if (!folds(part)) return;
  if (open)
    store.open.add(part);
  else
    store.open.delete(part);
  changed("view");
}

/// Unfolds what is around a part.
function reveal(part) {
  for (let at = shownAs(part).parent; at; at = at.parent) store.open.add(at);
}

/// How many operators and parameters of a part the search matches, and whether these are all.
function matchOf(part) {
  if (!store.match || !store.match.items.size) return {count: 0, whole: false};
  const count = part.inside.filter(one => store.match.items.has(one.id)).length;
  return {count, whole: count > 0 && count === part.inside.filter(one => one.kind !== "buffer").length};
}
