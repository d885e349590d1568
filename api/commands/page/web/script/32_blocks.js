// The tree as blocks: modules above what they contain, as wide as their share of time or bytes.

const blockHeight = 34, narrowest = 0.35;  // of a block: pixels, and percent of the width
const blocks = {
  root: null,
  shown: [],
  place: null
};

/// Blocks from `root` down: { part, left, width, level }, lengths in percent.
function blocksBelow(root) {
  const found = [];
  const add = (part, left, width, level) => {
    found.push({part, left, width, level});
    if (part.joined) return;
    let at = left;
    const whole = totalsAt(part).sum[store.measure];
    for (const child of part.children) {
      const share = whole > 0 ? width * totalsAt(child).sum[store.measure] / whole : 0;
      if (share >= narrowest) add(child, at, share, level + 1);
      at += share;
    }
  };
  add(root, 0, 100, 0);
  return found;
}

function blockElement({part, left, width, level}) {
  const totals = totalsAt(part), sums = totals.by[store.measure], selected = store.selection === part;
  const crossing = crossingOf(part), isLeaf = part.joined || part.kind !== "module";
  const size = store.measure === "ms" ? msText(totals.sum.ms) : bytesText(totals.sum[store.measure]);
  const classes = [
    "block", isLeaf && "leaf", selected && "is-selected", matchOf(part).whole && "is-match",
    isLeaf && crossing.enters && (crossing.entersExposed ? "is-boundary exposed" : "is-boundary")
  ].filter(Boolean).join(" ");
  const device = onlyDevice(sums);
  return element(
    "div", {
      role: "treeitem",
      id: `block-${part.id}`,
      class: classes,
      "data-item": part.id,
      "aria-level": level + 1,
      "aria-selected": String(selected),
      draggable: isReadOnly() ? null : "true",
      title: `${part.path || part.name}: ${size}`,
      style: {
        left: `${left}%`,
        width: `${width}%`,
        top: `${level * blockHeight}px`,
        "--c": device ? deviceColour(device) : null
      }
    },
    element("span", {class: "label"}, part.name), " ",
    element("small", {}, typeText(part) ? `${typeText(part)}, ${size}` : size),
    element("span", {class: "unseen"}, `, on ${devicesText(sums)}`),
    stackOf(sums, totals.sum[store.measure] || 1));
}

function zoomTo(part) {
  blocks.root = part.joined || part.kind !== "module" ? part.parent : part;
  changed("view");
}

/// Buttons from the model down to a part; the last one is where the view is.
function pathBar(part, go) {
  const line = [store.tree.root, ...ancestry(part)];
  return element(
    "nav", {class: "path-bar", "aria-label": "Where this is"},
    line.map((at, i) => [i > 0 && " › ", button(at.name, () => go(at), {
                           class: "plain",
                           "data-key": `path-${at.id}`,
                           "aria-current": i === line.length - 1 ? "true" : null
                         })]));
}

function blockKeys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = blocks.shown.findIndex(block => block.part === store.selection),
        block = blocks.shown[at] || blocks.shown[0];
  const sideways = by => {
    const row = blocks.shown.filter(one => one.level === block.level).sort((a, b) => a.left - b.left);
    return row[Math.max(0, Math.min(row.length - 1, row.indexOf(block) + by))];
  };
  const over = by => blocks.shown.find(
                       one => one.level === block.level + by && one.left <= block.left + 1e-9 &&
                         one.left + one.width > block.left + 1e-9) ||
    blocks.shown.find(
      one => one.level === block.level + by && one.left >= block.left && one.left < block.left + block.width);
  const to = {
    ArrowLeft: () => sideways(-1),
    ArrowRight: () => sideways(1),
    ArrowUp: () => over(-1),
    ArrowDown: () => over(1),
    Home: () => blocks.shown[0]
  }[event.key];
  if (to) {
    const next = at < 0 ? block : to();
    if (next) select(next.part);
  } else if (event.key === "Enter" || event.key === "ContextMenu") {
    const box = (byId(`block-${block.part.id}`) || blocks.place).getBoundingClientRect();
    openMenu(block.part, box.left + 8, box.bottom, blocks.place);
  } else if (event.key === " ") {
    zoomTo(block.part);
  } else if (event.key === "Backspace") {
    if (blocks.root.parent) zoomTo(blocks.root.parent);
  } else {
    return;
  }
  event.preventDefault();
}

function makeBlocks() {
  blocks.place = picturePlace(
    {
      role: "tree",
      class: "blocks",
      "aria-label": "Modules as blocks; space shows a module alone, backspace what is around it"
    },
    zoomTo, blockKeys);
  makeDragSource(blocks.place, partAt);
  return [element("div", {id: "blocks-path"}), blocks.place];
}

function showBlocks() {
  blocks.root ||= store.tree.root;
  refill(byId("blocks-path"), pathBar(blocks.root, zoomTo));
  blocks.shown = blocksBelow(blocks.root);
  blocks.place.replaceChildren(...blocks.shown.map(blockElement));
  blocks.place.style.height = `${(1 + Math.max(...blocks.shown.map(block => block.level))) * blockHeight}px`;
  const isShown = blocks.shown.some(block => block.part === store.selection);
  if (isShown)
    blocks.place.setAttribute("aria-activedescendant", `block-${store.selection.id}`);
  else
    blocks.place.removeAttribute("aria-activedescendant");
}
