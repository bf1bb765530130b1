# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the page of _report_html looks: on a wide and on a narrow screen, light and dark, and on paper."""

from __future__ import annotations

# Parts of a maintenance differ in lightness as well as in hue, and the way back has stripes. Statuses are words everywhere;
# their colours only help to find them.
STYLE = """
:root {
  color-scheme: light dark;
  --page: #f4f5f7; --surface: #ffffff; --sunken: #eceef2; --text: #1a2230; --muted: #596373; --line: #dfe3e8;
  --ink: #10151d; --grid: rgb(125 135 155 / 0.2); --meter: rgb(125 135 155 / 0.45);
  --evict: #9dbbee; --reboot: #f0b44c; --validate: #4fb391; --back: #e88ab0;
  --stripe: #c95a8b;
  --good: #1d7446; --good-soft: #e2f3e9; --bad: #b1271f; --bad-soft: #fdeceb; --wait: #83560a; --wait-soft: #fcf1db;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318; --surface: #181d25; --sunken: #222933; --text: #e5e9ef; --muted: #9aa5b4; --line: #2c3541;
    --evict: #7fa3e3; --reboot: #d99f3d; --validate: #3f9f80; --back: #dd7aa4; --stripe: #a8456f;
    --good: #6fd09b; --good-soft: #15301f; --bad: #ff8d83; --bad-soft: #3a1a1a; --wait: #eebb62; --wait-soft: #35290f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", sans-serif; }
main, header, footer { max-width: 1360px; margin: 0 auto; padding: 0 28px; }
header { padding-top: 30px; }
h1, h2, p, ul, dl, dd { margin: 0; padding: 0; }
h1 { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; font-size: 28px; line-height: 1.2;
  letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 17px; }
ul { list-style: none; }
.kind { color: var(--muted); margin-bottom: 3px; }
.state { font-size: 14px; font-weight: 600; letter-spacing: 0; padding: 3px 11px; border-radius: 99px;
  background: var(--sunken); }
.facts { display: flex; flex-wrap: wrap; gap: 10px 34px; margin-top: 18px; }
dt { color: var(--muted); font-size: 13px; }
dd { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
dd small { color: var(--muted); font-size: inherit; }
.passed { color: var(--good); } .failed { color: var(--bad); } .not-begun { color: var(--wait); }
.skipped { color: var(--muted); }
.state.passed { background: var(--good-soft); } .state.failed { background: var(--bad-soft); }
.state.not-begun { background: var(--wait-soft); }

.banner { margin-top: 22px; padding: 15px 20px; border-left: 5px solid; border-radius: 4px 10px 10px 4px; }
.banner.failed { background: var(--bad-soft); } .banner.not-begun { background: var(--wait-soft); }
.banner > * + * { margin-top: 7px; }
.banner p, .banner pre { color: var(--text); overflow-wrap: anywhere; }
.banner .who { color: var(--muted); font-size: 14px; }
.banner pre { margin-bottom: 0; padding: 9px 13px; border-radius: 6px; background: var(--surface); white-space: pre-wrap;
  max-height: 12em; overflow: auto; font: 13.5px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  }

.counts { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 22px; }
.counts li { min-width: 112px; padding: 9px 16px 11px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--surface); }
.counts b { display: block; font-size: 25px; line-height: 1.2; font-variant-numeric: tabular-nums; }
.counts span { color: var(--muted); font-size: 14px; }

section { margin-top: 30px; }
.title { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 26px; justify-content: space-between;
  margin-bottom: 9px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--muted); font-size: 13.5px; }
.legend i { display: inline-block; width: 20px; height: 11px; margin-right: 7px; border-radius: 3px; }
.evict { background: var(--evict); } .reboot { background: var(--reboot); } .validate { background: var(--validate); }
.back { background: repeating-linear-gradient(-45deg, var(--back) 0 5px, var(--stripe) 5px 7px); }

table { width: 100%; border-collapse: separate; border-spacing: 0; background: var(--surface); border: 1px solid var(--line);
  border-radius: 10px; }
th, td { padding: 5px 12px; text-align: left; font-weight: inherit; vertical-align: middle;
  border-top: 1px solid var(--line); }
thead th { position: sticky; top: 0; z-index: 2; padding: 8px 12px; border: 0; border-bottom: 1px solid var(--line);
  background: var(--surface); color: var(--muted); font-size: 13px; white-space: nowrap; vertical-align: bottom; }
thead th:first-child { border-top-left-radius: 10px; } thead th:last-child { border-top-right-radius: 10px; }
tbody tr:first-child > * { border-top: 0; }
tbody tr:last-child > :first-child { border-bottom-left-radius: 10px; }
tbody tr:last-child > :last-child { border-bottom-right-radius: 10px; }
tbody th { font-weight: 600; min-width: calc(var(--name) + 24px); overflow-wrap: anywhere; }
tbody th small { display: block; color: var(--muted); font-size: 13px; font-weight: 400; }
.outcome { white-space: nowrap; } td.driver { white-space: nowrap; font-size: 14px; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; color: var(--muted); }
td.total { min-width: 7em; color: var(--text); font-weight: 600; }
.meter { display: block;
  background: linear-gradient(to left, var(--meter) var(--share), transparent 0) bottom / 100% 3px no-repeat; }
.time { width: 54%; min-width: 240px; padding-left: 14px; padding-right: 14px; }
tbody td.time { padding-top: 0; padding-bottom: 0; }
.track { position: relative; height: 32px;
  background: repeating-linear-gradient(to right, var(--grid) 0 1px, transparent 1px calc(100% / var(--intervals))); }
.axis { position: relative; height: 18px; font-variant-numeric: tabular-nums; }
.axis span { position: absolute; bottom: 0; transform: translateX(-50%); }
.axis span:first-child { transform: none; } .axis span:last-child { transform: translateX(-100%); }
.bar { position: absolute; top: 7px; bottom: 7px; display: flex; min-width: 3px; border-radius: 3px; overflow: hidden; }
.bar:empty { background: var(--muted); }
.bar span { flex: none; overflow: hidden; color: var(--ink); font-size: 12px; line-height: 18px; text-align: center;
  white-space: nowrap; }
.bar.open { mask-image: linear-gradient(to right, #000 max(50%, 100% - 22px), rgb(0 0 0 / 0.15)); }
.dense tbody { font-size: 14px; } .dense tbody th, .dense tbody td:not(.time) { padding-top: 1px; padding-bottom: 1px; }
.dense tr.why td { padding-bottom: 6px; } .dense .track { height: 24px; } .dense .bar { top: 4px; bottom: 4px; }
.dense .bar span { line-height: 16px; }
tr.bad > * { background: var(--bad-soft); }
tr.bad > :first-child { box-shadow: inset 4px 0 var(--bad); }
tr.why td { border-top: 0; padding-top: 0; padding-bottom: 9px; color: var(--text); font-size: 14px;
  overflow-wrap: anywhere; }
tr.why:not(.bad) td { color: var(--muted); }
tbody tr:not(.bad):hover > * { background: var(--sunken); }
.names { display: flex; flex-wrap: wrap; gap: 2px 14px; } .names li { overflow-wrap: anywhere; }
.rest td, .rest th { vertical-align: top; padding-top: 8px; padding-bottom: 8px; }
.rest .outcome, .rest .when { width: 1%; white-space: nowrap; } .rest .reason { width: 48%; overflow-wrap: anywhere; }
.rest .by { width: 30%; overflow-wrap: anywhere; }
.empty { padding: 18px 20px; border: 1px solid var(--line); border-radius: 10px; background: var(--surface);
  color: var(--muted); }
footer { padding-top: 26px; padding-bottom: 34px; color: var(--muted); font-size: 13px; overflow-wrap: anywhere; }

@media screen and (max-width: 1000px) {
  .part { display: none; }
  .axis span:nth-child(even):not(:last-child), .axis.odd span:nth-last-child(2) { display: none; }
}
@media screen and (max-width: 700px) {
  main, header, footer { padding-left: 16px; padding-right: 16px; }
  h1 { font-size: 23px; }
  table, tbody, thead { display: block; }
  tr { display: grid; grid-template-columns: minmax(0, 1fr) auto auto; column-gap: 14px; padding: 7px 12px;
    border-top: 1px solid var(--line); }
  tbody tr:first-child, tr.why { border-top: 0; }
  th, td, tbody th { padding: 0; border: 0; min-width: 0; }
  .time, tbody td.time { grid-column: 1 / -1; grid-row: 2; width: auto; min-width: 0; padding: 3px 0 0; }
  .track { height: 24px; } .bar { top: 3px; bottom: 3px; } .bar span:not(.wide) { font-size: 0; }
  thead { position: sticky; top: 0; z-index: 2; background: var(--surface); border-bottom: 1px solid var(--line);
    border-radius: 10px 10px 0 0; }
  thead tr { border: 0; } thead th { position: static; padding: 0; border: 0; }
  td.driver { grid-column: 1 / -1; grid-row: 3; color: var(--muted); font-size: 13px; } thead .driver { display: none; }
  tr.bad { background: var(--bad-soft); box-shadow: inset 4px 0 var(--bad); } tr.bad > :first-child { box-shadow: none; }
  tr.why { padding-top: 0; } tr.why td { grid-column: 1 / -1; padding: 0; }
  tbody td.total { min-width: 5em; }
  .rest thead { display: none; } .rest tr, .rest td { display: block; } .rest td { padding: 1px 0; width: auto !important; }
}
@media print {
  :root { color-scheme: light; --page: #fff; --surface: #fff; --sunken: #eee; --text: #000; --muted: #444; --line: #bbb;
    --ink: #000;
    --evict: #9dbbee; --reboot: #f0b44c; --validate: #4fb391; --back: #e88ab0; --stripe: #c95a8b;
    --good: #1d7446; --good-soft: #e2f3e9; --bad: #b1271f; --bad-soft: #fdeceb; --wait: #83560a; --wait-soft: #fcf1db; }
  @page { size: A4 landscape; margin: 12mm; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { zoom: 0.72; } main, header, footer { max-width: none; padding-left: 0; padding-right: 0; }
  thead th { position: static; } tr, .banner, .counts { break-inside: avoid; } tr.taken:has(+ .why) { break-after: avoid; }
  .banner pre { max-height: none; }
}
"""
