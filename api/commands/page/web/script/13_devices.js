// Gives each device its colour, by its place in the list of devices, and shows it next to its name.

const devices = () => (store.state && store.state.devices) || store.model.devices;

function deviceColour(name) {
  const at = devices().findIndex(device => device.name === name);
  return `var(--d${at < 0 ? 7 : at % 8})`;
}

const dotOf = (name, title) => element(
  "i",
  {class: "dot", style: {"--c": name ? deviceColour(name) : "transparent"}, title, "aria-hidden": "true"});

const deviceTag = name => element("span", {class: "device-tag"}, dotOf(name), name);

/// A bar of parts, one for each device. `most` is the sum that fills it.
function stackOf(sums, most) {
  const parts =
    [...sums]
      .filter(([, value]) => value > 0)
      .map(
        ([name, value]) =>
          element("i", {style: {"--c": deviceColour(name), width: `${Math.min(100, 100 * value / most)}%`}}));
  return element("span", {class: "stack", "aria-hidden": "true"}, parts);
}

/// One dot with the colours of all devices of these sums.
function mixedDot(sums) {
  const names = [...sums.keys()], part = 100 / names.length;
  const colours = names.map((name, i) => `${deviceColour(name)} ${i * part}% ${(i + 1) * part}%`);
  return element("i", {
    class: "dot",
    "aria-hidden": "true",
    title: `on ${names.join(" and ")}`,
    style: {
      background: names.length > 1 ? `linear-gradient(90deg, ${colours.join(", ")})` : deviceColour(names[0])
    }
  });
}

const devicesText = sums => [...sums.keys()].join(", ");
