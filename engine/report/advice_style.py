"""The style of the HTML report. Colours are variables, so that pictures follow light and dark themes and print."""

STYLE = """
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --ink: #1d2126; --dim: #5d6670; --rule: #dfe2e6;
  --accent: #1f5fbf; --computing: #2f6fd0; --overlap: #7f9fe0; --transfer: #0f8f86; --communication: #6b7fa3;
  --waiting: #d9822b; --idle: #c3c8ce; --on: #ffffff; --on-idle: #30363d; --high: #b3261e; --medium: #8a5a00;
  --low: #4b5563; --code: #f1f3f5; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1c2024; --ink: #e6e9ec; --dim: #9aa4ae;
  --rule: #30363c; --accent: #7fb0ff; --computing: #4f8ae6; --overlap: #93aef0; --transfer: #2fb3a8;
  --communication: #8496b8; --waiting: #e79a4b; --idle: #4a5159; --on: #0f1214; --on-idle: #e6e9ec; --high: #ff8a80;
  --medium: #f0b860; --low: #aab4be; --code: #262b30; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 34px 0 10px; }
h3 { font-size: 16px; margin: 0 0 6px; display: flex; flex-wrap: wrap; gap: 8px; align-items: baseline; }
header ul { margin: 10px 0 0; padding-left: 20px; }
.facts, .dim, .note { color: var(--dim); }
.note { font-size: 13px; margin: 6px 0 0; }
article { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 14px 18px;
  margin: 12px 0;
  break-inside: avoid; overflow-wrap: anywhere; }
article p { margin: 4px 0; }
.place { color: var(--dim); min-width: 20px; }
.loss { color: var(--dim); font-size: 13px; }
.gain { font-weight: 600; color: var(--accent); }
.pill { font-size: 12px; font-weight: 600; border: 1px solid currentColor; border-radius: 10px; padding: 0 8px; }
.pill.high { color: var(--high); } .pill.medium { color: var(--medium); } .pill.low, .pill.sim { color: var(--low); }
table { border-collapse: collapse; margin: 8px 0; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; vertical-align: top; padding: 3px 12px 3px 0; }
td { vertical-align: top; padding: 3px 12px 3px 0; }
.apply th { width: 150px; } .apply .dim { display: block; font-size: 12.5px; }
.evidence th, .evidence td { border-top: 1px solid var(--rule); font-size: 13px; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
code { background: var(--code); border-radius: 4px; padding: 1px 5px; font: 13px/1.5 ui-monospace, Consolas, monospace;
  user-select: all; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: 80px 1fr; gap: 2px 12px; margin: 8px 0; font-size: 13.5px; }
dt { color: var(--dim); } dd { margin: 0; }
details { margin-top: 8px; } summary { cursor: pointer; color: var(--dim); font-size: 13.5px; }
svg { width: 100%; height: auto; background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: 8px; }
svg text { font: 13px system-ui, "Segoe UI", sans-serif; fill: var(--ink); } svg text.dim { fill: var(--dim); }
.computing { fill: var(--computing); } .overlap { fill: var(--overlap); } .transfer { fill: var(--transfer); }
.communication { fill: var(--communication); } .waiting { fill: var(--waiting); } .idle { fill: var(--idle); }
svg text.on-computing, svg text.on-overlap, svg text.on-transfer, svg text.on-communication, svg text.on-waiting {
  fill: var(--on); font-size: 12px; } svg text.on-idle { fill: var(--on-idle); font-size: 12px; }
.grid { stroke: var(--rule); } .rerun { fill: var(--accent); fill-opacity: 0.55; }
.analytic { fill: none; stroke: var(--accent); stroke-dasharray: 4 3; } .expected { fill: var(--accent); }
.curve-allocated, .curve-reserved, .curve-limit { fill: none; stroke-width: 1.6; }
.curve-allocated { stroke: var(--computing); } .curve-reserved { stroke: var(--waiting); }
.curve-limit { stroke: var(--high); stroke-dasharray: 6 4; }
svg text.name-allocated { fill: var(--computing); } svg text.name-reserved { fill: var(--waiting); }
svg text.name-limit { fill: var(--high); }
@media print { body { background: #ffffff; } main { max-width: none; padding: 0; } details > * { display: block; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
