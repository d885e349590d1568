// The script of a report. Without it only the numbers at the pointer are missing.
#include "api/commands/report/page_frame.h"

namespace tandem::api {

const std::string_view page_script = R"js(
"use strict";
(() => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const bytes = v => { let u = 0; while (v >= 1024 && u < 4) { v /= 1024; ++u; } return v.toFixed(u && v < 100 ? 1 : 0) + " " + units[u]; };
  const number = v => Math.abs(v) >= 1e4 ? Math.round(v).toLocaleString("en-US") : String(Number(v.toPrecision(4)));
  const hidden = new Set();

  // The last place whose x is not above `at`, or of lines of few points the nearest one.
  const place = (xs, at, steps) => {
    let low = 0, high = xs.length - 1;
    while (low < high) { const middle = (low + high + 1) >> 1; if (xs[middle] <= at) low = middle; else high = middle - 1; }
    return !steps && low + 1 < xs.length && xs[low + 1] - at < at - xs[low] ? low + 1 : low;
  };

  for (const figure of document.querySelectorAll("figure.chart")) {
    const plot = figure.querySelector(".plot"), data = JSON.parse(figure.querySelector("script").textContent);
    const [first, last] = data.x;
    const cursor = document.createElement("div"), readout = document.createElement("div");
    cursor.className = "cursor"; readout.className = "readout";
    cursor.hidden = readout.hidden = true;
    readout.setAttribute("aria-live", "polite");
    plot.append(cursor, readout);
    let at = null;

    const hide = () => { cursor.hidden = readout.hidden = true; };
    const show = x => {
      at = Math.min(last, Math.max(first, x));
      const part = last > first ? (at - first) / (last - first) : 0;
      const rows = [];
      let step = null, note = data.notes ? "" : "step";
      for (const line of data.lines) {
        if (hidden.has(line.run) || !line.x.length) continue;
        const i = place(line.x, at, line.bytes), y = line.y[i];
        if (step === null || Math.abs(line.x[i] - at) < Math.abs(step - at)) step = line.x[i];
        if (data.notes) note = data.notes[i] || "";
        rows.push([line.name, y === null ? "not finite" : line.bytes ? bytes(y) : number(y)]);
      }
      if (!rows.length) return hide();
      readout.replaceChildren();
      for (const [name, value] of [[note, number(step)], ...rows]) {
        const row = document.createElement("div"), left = document.createElement("span"), right = document.createElement("b");
        left.textContent = name; right.textContent = value;
        row.append(left, right); readout.append(row);
      }
      cursor.style.left = 100 * part + "%";
      readout.style.left = part < .5 ? `calc(${100 * part}% + 8px)` : "auto";
      readout.style.right = part < .5 ? "auto" : `calc(${100 * (1 - part)}% + 8px)`;
      cursor.hidden = readout.hidden = false;
    };
    plot.addEventListener("pointermove", event => {
      const box = plot.getBoundingClientRect();
      show(first + (last - first) * (event.clientX - box.left) / box.width);
    });
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", event => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide();
      if (!by) return;
      event.preventDefault();
      show((at === null ? first : at) + by * Math.max((last - first) / 60, Number.EPSILON));
    });
  }

  for (const box of document.querySelectorAll("input[data-run]")) {
    box.hidden = false;
    box.addEventListener("change", () => {
      const run = Number(box.dataset.run);
      if (box.checked) hidden.delete(run); else hidden.add(run);
      for (const part of document.querySelectorAll(`figure [data-run="${run}"]`)) part.toggleAttribute("hidden", !box.checked);
    });
  }
})();
)js";

}  // namespace tandem::api
