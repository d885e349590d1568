// Finds the copies between devices that cross the border of a part.

function withParents(part) {
  const line = new Set();
  for (let at = part; at; at = at.parent) line.add(at);
  return line;
}

/// A copy enters the parts that read it and do not make it, and leaves those that make it and do
/// not read all of it.
function addCopies(tree, transfers, all) {
  for (const copy of transfers) {
    if (copy.scalar) continue;
    const made = withParents(tree.byPath.get(copy.producer));
    const readers = copy.consumers.map(consumer => withParents(tree.byPath.get(consumer)));
    const entered = new Set(readers.flatMap(reader => [...reader]).filter(part => !made.has(part)));
    for (const part of entered) all[part.id].entering.push(copy);
    for (const part of made)
      if (readers.some(reader => !reader.has(part))) all[part.id].leaving.push(copy);
  }
}

/// Results that the next operator waits for, unlike weights and gradients.
const isResult = copy => copy.phase === "forward" && !store.tree.byPath.get(copy.value);

const bytesOfCopies = copies => copies.reduce((sum, copy) => sum + copy.bytes * (copy.times || 1), 0);
const exposedOfCopies = copies => copies.reduce((sum, copy) => sum + (copy.exposed_ms || 0), 0);

function crossingOf(part) {
  const {entering, leaving} = totalsAt(part);
  const copies = [...new Set([...entering, ...leaving])];
  const exposed = exposedOfCopies(copies);
  return {
    copies,
    bytes: bytesOfCopies(copies),
    exposed,
    enters: entering.some(isResult),
    text: `${bytesText(bytesOfCopies(entering))} in, ${bytesText(bytesOfCopies(leaving))} out; ${
      exposedText(exposed)}`
  };
}

const exposedText = ms => ms > 0 ? `exposed ${msText(ms)}` : "hidden behind computing";
