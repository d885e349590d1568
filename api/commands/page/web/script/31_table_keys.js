// The keys of the table, as the ARIA pattern of a tree grid has them.

function rowKeys(event, rows, {menu, page}) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = rows.indexOf(store.selection), part = at < 0 ? null : rows[at];
  const go = index => rows.length && select(rows[Math.max(0, Math.min(rows.length - 1, index))]);
  const unfold = () => {
    if (!part)
      go(0);
    else if (folds(part))
      store.open.has(part) ? go(at + 1) : toggle(part, true);
  };
  const fold = () => {
    if (part && folds(part) && store.open.has(part))
      toggle(part, false);
    else if (part && part.parent)
      select(part.parent);
  };
  const acts = {
    ArrowDown: () => go(at + 1),
    ArrowUp: () => go(at < 0 ? 0 : at - 1),
    PageDown: () => go(at + page),
    PageUp: () => go(at - page),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    ArrowRight: unfold,
    ArrowLeft: fold,
    " ": () => part && toggle(part),
    Enter: () => part && menu(),
    ContextMenu: () => part && menu(),
  };
  const act = event.key === "F10" && event.shiftKey ? acts.ContextMenu : acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
