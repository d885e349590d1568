// Writes numbers with units as the program's reports do.

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

function bytesText(bytes) {
  let unit = 0, value = bytes;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/// Bytes for a narrow column; nothing for none.
const bytesOrNone = bytes => bytes ? bytesText(bytes) : "";

function msText(ms) {
  const size = Math.abs(ms);
  if (size === 0) return "0 ms";
  if (size >= 10000) return `${(ms / 1000).toFixed(1)} s`;
  if (size < 0.0005) return "< 0.001 ms";
  return `${ms.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)} ms`;
}

/// A change with its sign; "" where nothing that can be seen changes.
function signed(difference, text) {
  if (text(Math.abs(difference)) === text(0) || /^< /.test(text(Math.abs(difference)))) return "";
  return (difference > 0 ? "+" : "−") + text(Math.abs(difference));
}

const percent = part => `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;

const counted = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

const shapeText = sizes => `[${(sizes || []).join(", ")}]`;

/// A number for an axis or a readout.
const numberText = value => Number.isFinite(value)
  ? Math.abs(value) >= 1e4 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(4)))
  : "not finite";
