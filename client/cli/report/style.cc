#include "client/cli/report/style.h"

namespace chainfleet {

const char kReportStyle[] = R"css(
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1a2029; --muted: #5a6675; --line: #dfe4ea; --grid: #e9edf1;
  --accent: #0072b2; --good: #00734f; --bad: #b5400a; --bad-tint: #fdf1ea; --heat-ink: #d55e00;
  --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #b8578f; --s4: #b88400; --s5: #3a9bd4; --s6: #5c4fb3; --s7: #6b7280;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161c; --card: #1a2028; --ink: #e6eaf0; --muted: #9aa7b7; --line: #2c3540; --grid: #262e38;
    --accent: #56b4e9; --good: #3fc79a; --bad: #f08a4b; --bad-tint: #33241b; --heat-ink: #e0701f;
    --s0: #56b4e9; --s1: #f08a4b; --s2: #2fc496; --s3: #e08abc; --s4: #e6b640; --s5: #8fd0f5; --s6: #a79bf0; --s7: #a3adba;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body {
  margin: 0; background: var(--page); color: var(--ink); -webkit-text-size-adjust: 100%;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif;
}
main, header, footer { max-width: 1140px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 40px; }
.eyebrow { margin: 0; color: var(--muted); font-size: 13px; letter-spacing: .06em; text-transform: uppercase; }
h1 { margin: 2px 0 6px; font-size: 32px; line-height: 1.2; letter-spacing: -.01em; overflow-wrap: anywhere; }
.sub { margin: 0; color: var(--muted); }
.state { display: inline-block; padding: 1px 10px; border-radius: 99px; background: var(--accent); color: var(--card); font-size: 12px;
  font-weight: 600; letter-spacing: .03em; vertical-align: 2px; }
.state.good { background: var(--good); } .state.bad { background: var(--bad); }
h2 { margin: 44px 0 14px; font-size: 20px; letter-spacing: -.005em; }
h3 { margin: 0 0 10px; font-size: 16px; }
h4 { margin: 14px 0 8px; font-size: 13px; color: var(--muted); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 26px 0 0; padding: 0; list-style: none; }
.tiles li { padding: 14px 16px; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.tiles b { display: block; font-size: 26px; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }
.tiles span { display: block; color: var(--muted); font-size: 12.5px; overflow-wrap: anywhere; }
.tiles .good { color: var(--good); } .tiles .bad { color: var(--bad); }
.warnings { margin: 18px 0 0; padding: 12px 18px; background: var(--bad-tint); border: 1px solid var(--bad); border-radius: 10px; }
.warnings ul { margin: 4px 0 0; padding-left: 20px; }
.figures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 16px; }
figure { margin: 0; padding: 18px 20px 16px; background: var(--card); border: 1px solid var(--line); border-radius: 10px; min-width: 0;
  display: flex; flex-direction: column; break-inside: avoid; }
figure.wide { grid-column: 1 / -1; }
figure > svg { display: block; width: 100%; height: auto; overflow: visible; }
figcaption { margin-top: auto; padding-top: 12px; color: var(--muted); font-size: 13px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0 0 8px; padding: 0; list-style: none; color: var(--muted); font-size: 13px; }
.key { width: 22px; height: 10px; margin-right: 6px; vertical-align: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 12px 6px 0; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
thead th { color: var(--muted); font-size: 11.5px; font-weight: 600; letter-spacing: .04em; }
tbody tr:last-child th, tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; padding-right: 0; padding-left: 18px; } .number:first-child { padding-left: 0; width: 4em; }
.number + :not(.number) { padding-left: 26px; }
table.map { border-collapse: separate; border-spacing: 3px; }
table.map th { border: 0; font-weight: 500; padding: 4px 8px 4px 0; }
table.map thead th { text-align: center; padding-right: 0; } table.map thead th:first-child { text-align: left; }
td.heat { border: 0; padding: 12px 4px; text-align: center; border-radius: 4px;
  background: color-mix(in srgb, var(--heat-ink) var(--heat, 0%), var(--grid)); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 5px 22px; margin: 0; }
dt { color: var(--muted); } dd { margin: 0; overflow-wrap: anywhere; white-space: pre-line; }
details { margin-top: 14px; } summary { cursor: pointer; color: var(--accent); }
pre { margin: 8px 0 0; padding: 14px 16px; background: var(--page); border-radius: 8px; overflow-x: auto; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
code { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; }
.absent { margin: 0; padding-left: 20px; color: var(--muted); } .absent b { color: var(--ink); font-weight: 600; }
.examples { display: grid; grid-template-columns: repeat(auto-fill, minmax(112px, 1fr)); gap: 12px; margin: 0; padding: 0; list-style: none; }
.examples li { padding: 8px; border: 1px solid var(--line); border-top: 3px solid var(--good); border-radius: 8px; font-size: 12.5px; line-height: 1.45; }
.examples li.wrong { border-top-color: var(--bad); }
.examples img { display: block; width: 100%; aspect-ratio: 1; object-fit: contain; image-rendering: pixelated; background: #000; border-radius: 4px; margin-bottom: 6px; }
.examples b, .examples span { display: block; } .examples span { color: var(--muted); }
.right b { color: var(--good); } .wrong b { color: var(--bad); }
.meter { height: 5px; margin: 4px 0; border-radius: 3px; background: var(--grid); overflow: hidden; } .meter i { display: block; height: 100%; background: var(--s0); }
footer { padding-top: 36px; padding-bottom: 48px; color: var(--muted); font-size: 13px; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--muted); font-variant-numeric: tabular-nums; }
svg .label { fill: var(--ink); } svg .middle { text-anchor: middle; } svg .end { text-anchor: end; }
svg .callout { fill: var(--ink); font-size: 15px; font-weight: 600; }
svg .note { paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--muted); }
svg .rule { stroke: var(--muted); stroke-width: 1.4; stroke-dasharray: 5 4; fill: none; }
svg .line, svg .trace { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
svg .trace { stroke-width: 1.1; stroke-opacity: .85; }
svg .bar { fill: var(--c); fill-opacity: .82; stroke: var(--card); stroke-width: 1; }
svg .area { fill: var(--c); fill-opacity: .2; }
svg .gap { fill: var(--c); fill-opacity: .38; stroke: var(--c); stroke-width: 1; }
svg .dot { fill: var(--c); stroke: var(--card); stroke-width: 1; }
.key .bar { stroke: var(--c); stroke-width: 9; } .key .gap { stroke-width: 9; stroke-opacity: .4; } .key .line, .key .trace { stroke-width: 3; }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
.s4 { --c: var(--s4); } .s5 { --c: var(--s5); } .s6 { --c: var(--s6); } .s7 { --c: var(--s7); }
svg .line.s1 { stroke-dasharray: 9 3; } svg .line.s2 { stroke-dasharray: 4 2; } svg .line.s3 { stroke-dasharray: 12 3 3 3; }
svg .line.s5 { stroke-dasharray: 9 3; } svg .line.s6 { stroke-dasharray: 4 2; } svg .line.s7 { stroke-dasharray: 12 3 3 3; }
@media (max-width: 800px) { .figures { grid-template-columns: minmax(0, 1fr); } }
@media print {
  :root { --page: #fff; --card: #fff; --ink: #000; --muted: #444; --line: #bbb; --grid: #e4e4e4; }
  body { font-size: 11pt; } header { padding-top: 0; } h2 { break-after: avoid; } details > *, .tiles li { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";

}  // namespace chainfleet
