// Finds the copies between devices that begin or end in a part.

function withParents(part) {
  const line = new Set();
  for (let at = part; at; at = at.parent) line.add(at);
  return line;
}

/// A copy touches the parts that make or read it; the model has all. It enters the parts that read
/// it and do not make it, and leaves those that make it and do not read all of it.
function addCopies(tree, transfers, all) {
  for (const copy of transfers) {
    if (copy.scalar) continue;
    const made = withParents(endOfCopy(tree, copy.producer));
    const readers = copy.consumers.map(consumer => withParents(endOfCopy(tree, consumer)));
    const read = readers.flatMap(reader => [...reader]);
    for (const part of new Set([tree.root, ...made, ...read])) all[part.id].touching.push(copy);
    for (const part of new Set(read.filter(one => !made.has(one)))) all[part.id].entering.push(copy);
    for (const part of made)
      if (readers.some(reader => !reader.has(part))) all[part.id].leaving.push(copy);
  }
}

/// Results that the next operator waits for, unlike weights and gradients.
function isResult(copy) {
  const from = endOfCopy(store.tree, copy.producer);
  return copy.phase === "forward" && !(from && isStored(from));
}

/// What is copied a step ahead counts where the step uses it.
const bytesOfCopies = copies =>
  copies.reduce((sum, copy) => sum + (copy.ahead ? 0 : copy.bytes * (copy.times || 1)), 0);
const exposedOfCopies = copies => copies.reduce((sum, copy) => sum + (copy.exposed_ms || 0), 0);

function crossingOf(part) {
  const {entering, leaving, touching} = totalsAt(part);
  const border = new Set([...entering, ...leaving]);
  const inside = touching.filter(copy => !border.has(copy)), results = entering.filter(isResult);
  const exposed = exposedOfCopies(touching);
  const parts = [[entering, "in"], [leaving, "out"], [inside, "inside"]]
                  .filter(([copies]) => copies.length)
                  .map(([copies, where]) => `${bytesText(bytesOfCopies(copies))} ${where}`);
  return {
    copies: touching,
    bytes: bytesOfCopies(touching),
    exposed,
    enters: results.length > 0,
    entersExposed: exposedOfCopies(results) > 0,
    text: `${parts.join(", ")}; ${exposedText(exposed)}`
  };
}

const exposedText = ms => ms > 0 ? `exposed ${msText(ms)}` : "hidden behind computing";
