// Drags a part of the model to the tile of a device.

let dragged = null;

/// What a drop may set, as zones of a device's tile.
const dropZones = [["on", "everything"], ["run", "compute"], ["param", "parameters"], ["state", "state"]];

/// Makes the parts in `place` draggable; `partAt` finds the part of an event.
function makeDragSource(place, partAt) {
  place.addEventListener("dragstart", event => {
    const part = partAt(event);
    if (!part || isReadOnly() || !isPlanned()) return event.preventDefault();
    dragged = part;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", part.at);
    // The page must not change within this event, or the drag ends at once.
    setTimeout(() => document.body.classList.add("dragging"), 0);
  });
  place.addEventListener("dragend", endDrag);
}

function endDrag() {
  dragged = null;
  document.body.classList.remove("dragging");
}

function dropZone(device, key, name) {
  return element(
    "span", {
      class: "zone",
      "data-zone": key,
      on: {
        dragover: event => {
          if (!dragged) return;
          event.preventDefault();
          event.currentTarget.classList.add("is-over");
        },
        dragleave: event => event.currentTarget.classList.remove("is-over"),
        drop: event => {
          event.preventDefault();
          event.currentTarget.classList.remove("is-over");
          const part = dragged;
          endDrag();
          if (part) place([part], {[key]: device});
        },
      }
    },
    name);
}

/// The zones of a tile; they show while something is dragged.
const zonesOf = device => element(
  "div", {class: "zones", "aria-hidden": "true"},
  dropZones.map(([key, name]) => dropZone(device, key, name)));
