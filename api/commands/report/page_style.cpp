// The style of a report and of its fragments in notebooks: quiet colours that keep their contrast
// in light and dark, numbers in columns, one column of charts on narrow screens.
#include <fmt/format.h>

#include "api/commands/report/page_frame.h"

namespace tandem::api {
namespace {

constexpr std::string_view before_tables = R"css(
:root {
  color-scheme: light dark;
  --page: #fbfaf8; --sheet: #ffffff; --ink: #23272b; --quiet: #646b72; --line: #dcdad5; --grid: #eceae5;
  --accent: #23627c; --bad: #a13a2f;
  --c0: #23627c; --c1: #b8682a; --c2: #567a35; --c3: #7d5191; --c4: #a4443d; --c5: #3c7f78; --c6: #8a7420; --c7: #5f6670;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16191c; --sheet: #1d2125; --ink: #e4e6e8; --quiet: #9aa2aa; --line: #343a40; --grid: #2a2f34;
    --accent: #7cb8d2; --bad: #e58d82;
    --c0: #7cb8d2; --c1: #e0a36d; --c2: #a3c27f; --c3: #c19dd2; --c4: #e08b84; --c5: #7fc4bc; --c6: #d2bd6a; --c7: #a6aeb7;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
header, main, footer { max-width: 1120px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 36px; padding-bottom: 4px; }
h1 { font-size: 26px; line-height: 1.25; font-weight: 600; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; font-weight: 600; margin: 0 0 14px; }
h3 { font-size: 14px; font-weight: 600; margin: 0; display: inline; overflow-wrap: anywhere; }
p { margin: 0 0 10px; max-width: 72ch; }
code { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { background: var(--grid); padding: 10px 12px; border-radius: 6px; overflow-x: auto; margin: 0 0 10px; }
.quiet, small, .unit { color: var(--quiet); }
.unit, small { font-size: 13px; }
.bad { color: var(--bad); }
section { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; padding: 20px; margin: 18px 0; }
nav { display: flex; flex-wrap: wrap; gap: 2px 16px; margin-top: 10px; font-size: 14px; }
nav a { color: var(--accent); text-decoration: none; white-space: nowrap; }
nav a:hover { text-decoration: underline; }
.facts { display: flex; flex-wrap: wrap; gap: 14px 36px; margin: 0; }
.facts div { min-width: 90px; }
.facts dt { color: var(--quiet); font-size: 13px; }
.facts dd { margin: 0; font-size: 21px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.facts dd small { display: block; line-height: 1.3; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 28px 32px; }
figure { margin: 0; min-width: 0; }
figcaption { margin-bottom: 8px; }
.frame { display: grid; grid-template-columns: 62px 1fr; grid-template-rows: 220px 22px auto; padding-right: 18px; }
.y-ticks { position: relative; }
.y-ticks span, .x-ticks span { position: absolute; font-size: 12px; color: var(--quiet); font-variant-numeric: tabular-nums; white-space: nowrap; }
.y-ticks span { right: 8px; transform: translateY(-50%); }
.plot { position: relative; border-left: 1px solid var(--line); border-bottom: 1px solid var(--line); touch-action: pan-y; }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.plot:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
.x-ticks { position: relative; grid-column: 2; }
.x-ticks span { top: 4px; transform: translateX(-50%); }
.x-name { grid-column: 2; text-align: center; font-size: 12px; color: var(--quiet); }
svg path { fill: none; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--grid); stroke-width: 1; }
.line { stroke-width: 1.75; stroke-linejoin: round; }
.line.dashed { stroke-dasharray: 5 4; }
.dots { stroke-width: 6; stroke-linecap: round; }
.mark { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 4; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
svg .line, svg .dots { stroke: var(--c); }
svg .area { fill: var(--c); fill-opacity: .72; stroke: var(--sheet); stroke-width: .75; }
.legend { list-style: none; margin: 10px 0 0; padding: 0 0 0 62px; font-size: 13px; }
.legend li { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 8px; overflow-wrap: anywhere; }
.legend b { font-weight: 600; font-variant-numeric: tabular-nums; }
.key { display: inline-block; flex: none; width: 18px; height: 0; border-top: 2px solid var(--c); transform: translateY(-4px); }
.key.dashed { border-top-style: dashed; }
.key.block { width: 11px; height: 11px; border: 0; border-radius: 2px; background: var(--c); transform: translateY(1px); }
.cursor { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--quiet); pointer-events: none; }
.readout {
  position: absolute; top: 4px; z-index: 2; pointer-events: none; max-width: min(280px, 90%);
  background: var(--sheet); border: 1px solid var(--line); border-radius: 6px; padding: 6px 9px;
  font-size: 12px; line-height: 1.45; font-variant-numeric: tabular-nums; box-shadow: 0 2px 8px rgb(0 0 0 / .14);
}
.readout div { display: flex; justify-content: space-between; gap: 12px; overflow-wrap: anywhere; }
)css";

constexpr std::string_view tables = R"css(
.table { overflow-x: auto; margin: 0 -4px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; padding: 5px 10px 5px 4px; border-bottom: 1px solid var(--grid); vertical-align: top; font-weight: 400; }
thead th { color: var(--quiet); font-size: 13px; border-bottom-color: var(--line); white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.break { overflow-wrap: anywhere; min-width: 120px; }
label.break { display: inline-block; }
.best { font-weight: 600; }
.bars table { table-layout: auto; }
.bars th { width: 34%; min-width: 96px; overflow-wrap: anywhere; }
.bars .bar { width: 40%; padding-right: 12px; }
.bars .bar i { display: block; height: 11px; margin-top: 5px; min-width: 1px; border-radius: 2px; background: var(--accent); opacity: .8; }
.matrix td, .matrix th { text-align: right; padding: 4px 7px; font-variant-numeric: tabular-nums; border: 1px solid var(--sheet); }
.matrix td { background: color-mix(in srgb, var(--accent) calc(var(--part) * 58%), transparent); }
details { margin-top: 12px; }
summary { cursor: pointer; color: var(--accent); font-size: 14px; }
)css";

constexpr std::string_view after_tables = R"css(
input[type=checkbox] { accent-color: var(--c, var(--accent)); margin: 0 6px 0 0; vertical-align: -1px; }
footer { color: var(--quiet); font-size: 13px; padding-top: 6px; padding-bottom: 40px; }
[hidden] { display: none !important; }
@media (max-width: 560px) {
  header, main, footer { padding-left: 10px; padding-right: 10px; }
  section { padding: 14px 12px; border-radius: 8px; }
  .frame { grid-template-columns: 52px 1fr; grid-template-rows: 190px 22px auto; }
  .legend { padding-left: 4px; }
  h1 { font-size: 22px; }
  .bars .bar { width: 26%; }
}
@media print { body { background: none; } section { break-inside: avoid; border-color: #ccc; } }
)css";

// Notebooks have colours of their own, light or dark, and their own fonts.
constexpr std::string_view notebook_colours = R"css(
.tandem {
  --quiet: color-mix(in srgb, currentColor 65%, transparent); --line: color-mix(in srgb, currentColor 25%, transparent);
  --grid: color-mix(in srgb, currentColor 10%, transparent); --sheet: transparent; --accent: #3a86a8; --bad: #c0503f;
}
)css";

constexpr std::string_view notebook_texts = R"css(
p { margin: 0 0 8px; }
.quiet, .unit { color: var(--quiet); }
.bad { color: var(--bad); }
h3 { font-size: 14px; font-weight: 600; margin: 0; display: inline; }
figure { margin: 12px 0 0; }
pre { background: var(--grid); padding: 8px 10px; overflow-x: auto; }
div.table { margin-bottom: 10px; }
)css";

}  // namespace

std::string page_style() { return fmt::format("{}{}{}", before_tables, tables, after_tables); }

std::string fragment(std::string_view content) {
  return fmt::format("<div class=\"tandem\"><style>{}.tandem {{{}{}}}</style>{}</div>",
                     notebook_colours, notebook_texts, tables, content);
}

}  // namespace tandem::api
