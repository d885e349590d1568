// Sums time and bytes of the current plan over every part of the tree, apart for each device.

/// What the sizes of bars, blocks and boxes may stand for.
const measures = {
  ms: "time",
  parameters: "parameters",
  states: "optimizer state",
  activations: "activations",
};

const addTo = (sums, device, value) => {
  if (value && device) sums.set(device, (sums.get(device) || 0) + value);
};

function noTotals() {
  const by = Object.fromEntries(Object.keys(measures).map(measure => [measure, new Map()]));
  return {run: new Map(), by, sum: {}, phases: [0, 0, 0], entering: [], leaving: [], touching: []};
}

function addOwn(totals, part, place) {
  if (!place) return;
  if (isStored(part)) {
    addTo(totals.by.parameters, place.param, part.kind === "parameter" ? part.bytes : 0);
    addTo(totals.by.states, place.state, (place.state_bytes || 0) + (place.master_bytes || 0));
    addTo(totals.by.ms, place.state, place.update_ms || 0);
    totals.phases[2] += place.update_ms || 0;
    return;
  }
  addTo(totals.run, place.run, 1);
  addTo(totals.by.ms, place.run, (place.forward_ms || 0) + (place.backward_ms || 0));
  addTo(
    totals.by.activations, place.acts === "offload" ? store.model.devices[0].name : place.run,
    place.kept || 0);
  totals.phases[0] += place.forward_ms || 0;
  totals.phases[1] += place.backward_ms || 0;
}

function addAll(into, from) {
  for (const [device, count] of from.run) addTo(into.run, device, count);
  for (const measure of Object.keys(measures)) {
    for (const [device, value] of from.by[measure]) addTo(into.by[measure], device, value);
  }
  from.phases.forEach((ms, phase) => { into.phases[phase] += ms; });
}

/// Totals by part. Items stand before what is below them, so that one walk from the end is enough.
function totalsOf(tree, state) {
  const all = tree.parts.map(noTotals);
  for (let id = tree.parts.length - 1; id >= 0; --id) {
    const part = tree.parts[id], totals = all[id];
    if (part.kind !== "module") addOwn(totals, part, state.placement[id]);
    for (const measure of Object.keys(measures)) {
      totals.sum[measure] = [...totals.by[measure].values()].reduce((sum, value) => sum + value, 0);
    }
    if (part.parent) addAll(all[part.parent.id], totals);
  }
  addCopies(tree, state.plan.transfers, all);
  return all;
}

const totalsAt = part => store.totals[part.id];

/// The only device of these sums; "" where there are several or none.
const onlyDevice = sums => sums.size === 1 ? [...sums.keys()][0] : "";

/// The values that an attribute has at and below a part: value to count.
function valuesOf(part, attribute) {
  const counts = new Map();
  for (const one of part.inside) {
    const place = store.state.placement[one.id];
    if (!place || place[attribute] === undefined || place[attribute] === null) continue;
    if (attribute === "state" && !one.trains) continue;
    addTo(counts, place[attribute], 1);
  }
  return counts;
}
