"""The style sheet of the page: for screens, light and dark, and for A4."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2328; --soft: #57646d; --line: #d9dfe3;
  --paper: #ffffff; --panel: #f4f7f8; --accent: #1f6f8b; --card: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebee; --soft: #a3b0b8; --line: #37424a;
  --paper: #14191d; --panel: #1d252a; --accent: #6cb8d1; --card: #ffffff; } }
* { box-sizing: border-box; }
html { font-size: 16px; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 2.5rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .8rem; padding-top: .6rem;
  border-top: 2px solid var(--accent); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .6rem; }
.lead, .note, caption { color: var(--soft); }
.lead { margin: 0; font-size: 1.05rem; }
.note { font-size: .9rem; }
.figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.6rem 0 0; padding: 0;
  list-style: none; }
.figures li { flex: 1 1 12rem; background: var(--panel); border-radius: .5rem;
  padding: .8rem 1rem; }
.figures strong { display: block; font-size: 1.45rem; line-height: 1.25;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.figures span { color: var(--soft); font-size: .85rem; }
figure { margin: 1rem 0; padding: .8rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; }
figure img { display: block; width: 100%; height: auto; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .2rem 0 .5rem; font-size: .9rem; }
th, td { padding: .38rem .7rem; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { border-bottom: 2px solid var(--soft); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 500; overflow-wrap: anywhere; max-width: 24rem; }
.number { text-align: right; white-space: nowrap; }
.small { display: block; color: var(--soft); font-size: .82rem; }
dl { margin: 0; }
dl div { display: grid; grid-template-columns: 14rem 1fr; gap: 1rem; padding: .3rem 0;
  border-bottom: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
code { font-size: .85em; overflow-wrap: anywhere; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--accent); }
ul.statements { padding-left: 1.2rem; }
ul.statements li { margin: .45rem 0; }
footer { color: var(--soft); font-size: .85rem; margin-top: 3rem; padding-bottom: 2.5rem; }
@media (max-width: 40rem) { dl div { grid-template-columns: 1fr; gap: 0; } }
@page { size: A4; margin: 16mm 15mm; }
@media print {
  :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --panel: #f2f4f5;
    --accent: #1f6f8b; }
  html { font-size: 10.5pt; }
  main, header, footer { max-width: none; padding: 0; }
  h2 { break-after: avoid; margin-top: 1.6rem; }
  figure, .figures, dl div, tr { break-inside: avoid; }
  thead { display: table-header-group; }
  .table { overflow: visible; }
  thead th, .number { white-space: normal; }
  th, td { padding: .25rem .4rem; }
  figure img { max-height: 150mm; object-fit: contain; }
  .figures li { padding: .5rem .7rem; flex-basis: 7rem; }
}
"""
