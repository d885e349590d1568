// Makes the tree of modules, operators and parameters from the items of the model.

/// Parts are items with `id` (the index of the item), `children`, `depth`, and `inside`: the
/// operators and parameters at or below it.
function treeOf(model) {
  const parts =
    model.items.map((item, id) => ({...item, id, children: [], inside: [], depth: 0, joined: null}));
  const byPath = new Map(), byUpdate = new Map();
  for (const part of parts) {
    part.parent = part.parent === null ? null : parts[part.parent];
    if (part.parent) part.parent.children.push(part);
    if (part.kind === "module") continue;
    byPath.set(part.path, part);
    if (part.update) byUpdate.set(part.update, part);
    for (let at = part; at; at = at.parent) at.inside.push(part);
  }
  parts.forEach(joinSingle);
  setDepth(parts[0], 0);
  return {root: parts[0], parts, byPath, byUpdate};
}

/// The part that an end of a copy belongs to: an operator, a parameter, or the parameter that is
/// updated there; undefined for inputs and outputs.
const endOfCopy = (tree, path) => tree.byPath.get(path) || tree.byUpdate.get(path);

/// A module with one operator is shown as this operator, in one row.
function joinSingle(part) {
  if (part.kind !== "module" || !part.parent) return;
  const computing = part.children.filter(child => !isStored(child));
  if (computing.length !== 1 || computing[0].kind === "module") return;
  part.joined = computing[0];
  part.children = part.children.filter(child => child !== part.joined);
}

function setDepth(part, depth) {
  part.depth = depth;
  for (const child of [...part.children, part.joined].filter(Boolean))
    setDepth(child, child === part.joined ? depth : depth + 1);
}

/// Parameters and running statistics: what a model stores.
const isStored = part => part.kind === "parameter" || part.kind === "buffer";

/// The operator that a row or box stands for; null for modules of several.
const operatorOf = part => part.kind === "operator" || part.kind === "added" ? part : part.joined;

/// The part that is shown for an item: an operator may be joined with its module.
const shownAs = part => part.parent && part.parent.joined === part ? part.parent : part;

function typeText(part) {
  if (isStored(part)) return part.kind;
  const operator = operatorOf(part);
  return operator ? operator.op : "";
}

/// Parts from below the root down to this one.
function ancestry(part) {
  const line = [];
  for (let at = part; at && at.parent; at = at.parent) line.unshift(at);
  return line;
}

const isInside = (part, outer) => {
  for (let at = part; at; at = at.parent)
    if (at === outer) return true;
  return false;
};

/// "1 operator"; what training adds to the model, such as its loss, is said to be added.
const kindText = (kind, count) =>
  kind === "added" ? `${counted(count, "operator")} added for training` : counted(count, kind);

/// "14 operators, 10 parameters"
function contentText(part) {
  const counts = {operator: 0, parameter: 0, buffer: 0, added: 0};
  for (const one of part.inside) ++counts[one.kind];
  return Object.entries(counts)
    .filter(([, count]) => count)
    .map(([kind, count]) => kindText(kind, count))
    .join(", ");
}
