// What several ranks exchange in a step.

function exchangeRow(one) {
  return element(
    "tr", {}, element("td", {}, one.op, one.algorithm && element("small", {}, ` ${one.algorithm}`)),
    element("td", {class: "path"}, one.path), element("td", {}, deviceTag(one.device)),
    element("td", {}, one.phase),
    element(
      "td", {class: "number"}, bytesText(one.bytes),
      one.times > 1 && element("small", {}, ` × ${one.times}`)),
    element("td", {class: "number"}, msText(one.ms)),
    element(
      "td", {class: one.exposed_ms > 0 ? "number bad" : "number"},
      one.exposed_ms > 0 ? msText(one.exposed_ms) : "hidden"));
}

function showRanks(panel) {
  const {exchange} = store.state.plan;
  if (!exchange) return refill(panel, element("p", {class: "quiet"}, "The ranks exchange nothing."));
  refill(
    panel,
    element(
      "p", {}, `All numbers of this page are those of the most loaded of ${exchange.ranks} ranks. `,
      `It exchanges ${bytesText(exchange.bytes)} a step in ${msText(exchange.ms)}; computing waits ${
        msText(exchange.exposed_ms)} for it.`),
    tableOf(
      ["collective", "of", "device", "phase", "size", "time", "exposed"], i => i > 3,
      exchange.exchanges.map(exchangeRow)));
}
