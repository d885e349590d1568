// Lays out a small graph in layers: every edge leads down, crossings are few.

const layerGap = 34, boxGap = 22, boxHeight = 40;

/// Numbers the layers: a box lies below all boxes that lead to it. `edges` lead from earlier boxes
/// to later ones.
function layerBoxes(boxes, edges) {
  for (const box of boxes) box.layer = 0;
  for (const box of boxes) {
    for (const edge of edges)
      if (edge.from === box) edge.to.layer = Math.max(edge.to.layer, box.layer + 1);
  }
  // A box without inputs stands right above its first reader.
  for (const box of boxes) {
    if (edges.some(edge => edge.to === box)) continue;
    const readers = edges.filter(edge => edge.from === box).map(edge => edge.to.layer);
    if (readers.length) box.layer = Math.min(...readers) - 1;
  }
}

/// An edge over several layers passes a bend in each.
function addBends(edges, layers) {
  for (const edge of edges) {
    edge.line = [edge.from];
    for (let layer = edge.from.layer + 1; layer < edge.to.layer; ++layer) {
      const bend = {isBend: true, layer, width: 10, up: [], down: []};
      layers[layer].push(bend);
      edge.line.push(bend);
    }
    edge.line.push(edge.to);
    for (let i = 1; i < edge.line.length; ++i) {
      edge.line[i - 1].down.push(edge.line[i]);
      edge.line[i].up.push(edge.line[i - 1]);
    }
  }
}

const meanOf = numbers => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

function orderLayers(layers, sweeps) {
  const number = layer => layer.forEach((box, i) => { box.at = i - layer.length / 2; });
  layers.forEach(number);
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const side = sweep % 2 === 0 ? "up" : "down";
    const line = sweep % 2 === 0 ? layers : [...layers].reverse();
    for (const layer of line) {
      const wish =
        new Map(layer.map(box => [box, box[side].length ? meanOf(box[side].map(one => one.at)) : box.at]));
      layer.sort((a, b) => wish.get(a) - wish.get(b));
      number(layer);
    }
  }
}

/// Moves the boxes of a layer as near as possible to where they wish to be, in their order.
function settle(layer, side) {
  const wish = box => box[side].length ? meanOf(box[side].map(one => one.x)) : box.x;
  const wishes = layer.map(wish);
  let edge = -Infinity;
  layer.forEach((box, i) => {
    box.x = Math.max(wishes[i], edge + box.width / 2);
    edge = box.x + box.width / 2 + boxGap;
  });
  const shift = meanOf(layer.map((box, i) => box.x - wishes[i]));
  for (const box of layer) box.x -= shift;
}

/// Gives each box its centre `x`, its `y`, and each edge its `line` of boxes and bends. The result
/// is the size of the whole.
function layOut(boxes, edges) {
  layerBoxes(boxes, edges);
  const layers = Array.from({length: 1 + Math.max(0, ...boxes.map(box => box.layer))}, () => []);
  for (const box of boxes) {
    box.up = [];
    box.down = [];
    layers[box.layer].push(box);
  }
  addBends(edges, layers);
  orderLayers(layers, 8);
  for (const layer of layers) {
    let x = 0;
    for (const box of layer) {
      box.x = x + box.width / 2;
      x += box.width + boxGap;
    }
    for (const box of layer) box.x -= x / 2;
  }
  for (let round = 0; round < 6; ++round) {
    layers.forEach(layer => settle(layer, "up"));
    [...layers].reverse().forEach(layer => settle(layer, "down"));
  }
  const all = layers.flat();
  const left = Math.min(...all.map(box => box.x - box.width / 2)),
        right = Math.max(...all.map(box => box.x + box.width / 2));
  for (const box of all) {
    box.x += 12 - left;
    box.y = 12 + box.layer * (boxHeight + layerGap);
  }
  return {width: right - left + 24, height: layers.length * (boxHeight + layerGap) - layerGap + 24};
}
