// Builds elements of the page: every string becomes a text node or an attribute, never markup.

const svgSpace = "http://www.w3.org/2000/svg";

function fillElement(made, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (key === "style") {
      for (const [name, text] of Object.entries(value)) made.style.setProperty(name, text);
    } else if (key === "value") {
      made.value = value;
    } else {
      made.setAttribute(key, value === true ? "" : String(value));
    }
  }
  made.append(...children.flat(3).filter(child => child !== null && child !== undefined && child !== false));
  return made;
}

/// An element of HTML. `on` holds listeners, `style` properties of CSS; all else are attributes.
function element(tag, properties = {}, ...children) {
  return fillElement(document.createElement(tag), properties, children);
}

/// An element of SVG.
function shape(tag, properties = {}, ...children) {
  return fillElement(document.createElementNS(svgSpace, tag), properties, children);
}

const byId = id => document.getElementById(id);

/// Replaces the content of `place`. The part that had the focus has it afterwards, found by its
/// `data-key`; where it is gone, the place itself gets the focus.
function refill(place, ...children) {
  const active = place.contains(document.activeElement) && document.activeElement !== place
    ? document.activeElement
    : null;
  const key = active && active.dataset.key;
  const range = active && "selectionStart" in active ? [active.selectionStart, active.selectionEnd] : null;
  const scroll = place.scrollTop;
  place.replaceChildren(...children.flat(3).filter(Boolean));
  place.scrollTop = scroll;
  if (!active) return;
  const again = key && [...place.querySelectorAll("[data-key]")].find(part => part.dataset.key === key);
  if (again && !again.disabled) {
    again.focus({preventScroll: true});
    if (range && range[0] !== null && again.setSelectionRange) again.setSelectionRange(...range);
  } else {
    if (!place.hasAttribute("tabindex")) place.setAttribute("tabindex", "-1");
    place.focus({preventScroll: true});
  }
}

/// A button with a text; its `data-key` lets it keep the focus when its place is refilled.
function button(text, act, properties = {}) {
  return element("button", {type: "button", "data-key": text, ...properties, on: {click: act}}, text);
}

/// A table; `isNumber(i)` says whether column i is aligned as numbers are.
function tableOf(heads, isNumber, rows) {
  const cells =
    heads.map((name, i) => element("th", {scope: "col", class: isNumber(i) ? "number" : ""}, name));
  return element("table", {}, element("thead", {}, element("tr", {}, cells)), element("tbody", {}, rows));
}

/// Says it to screen readers.
function announce(text) {
  byId("announcer").textContent = "";
  requestAnimationFrame(() => { byId("announcer").textContent = text; });
}
