"""The style and the script of the page. No text depends on the script."""

STYLE = """
:root{--bg:#f7f6f3;--panel:#fff;--ink:#1c1b1a;--soft:#66625b;--line:#e3e0da;--accent:#2f5488;
--mark:#eef3f9;--good:#17713a;--bad:#b3261e;--badbg:#fdecea;--code:#f4f2ee;
--instruction:#64748b;--variable:#2563eb;--history:#7c3aed;--tool:#be185d;--context:#b45309;
--artifact:#15803d;--input:#0e7490;--other:#737373;
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){:root{--bg:#151517;--panel:#1d1e21;--ink:#ececea;--soft:#a9a59e;
--line:#33343a;--accent:#8fb4e3;--mark:#243043;--good:#63cf8a;--bad:#ff8a80;--badbg:#3a1f1d;
--code:#26272b;--instruction:#94a3b8;--variable:#6ea0ff;--history:#b794f6;--tool:#f472b6;
--context:#f0a24b;--artifact:#5fcf86;--input:#4cc3dc;--other:#a3a3a3}}
*{box-sizing:border-box}
html{scroll-padding-top:4rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.55 var(--sans)}
header,nav,main{max-width:1280px;margin:0 auto;padding:0 24px}
header{padding-top:28px}
h1{font-size:1.9rem;line-height:1.2;margin:0;overflow-wrap:anywhere;letter-spacing:-.01em}
h2{font-size:1.25rem;margin:40px 0 12px}
h3{font-size:1rem;font-weight:500;margin:0}
h4{font-size:.78rem;font-weight:600;letter-spacing:.05em;text-transform:uppercase;color:var(--soft);
margin:20px 0 8px}
p{margin:0 0 8px}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:3px}
code,pre{font-family:var(--mono);font-size:.86em}
code{overflow-wrap:anywhere}
pre{margin:0;padding:8px 12px;background:var(--code);border-radius:6px;white-space:pre-wrap;
overflow-wrap:anywhere;line-height:1.5;tab-size:4}
ol,ul{padding:0;margin:0;list-style:none}
.soft,.reason,.proof,.numbers,.size,.same{color:var(--soft)}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--panel);
padding:8px}
.good{color:var(--good)}.bad{color:var(--bad)}
.title{display:flex;gap:14px;align-items:center;flex-wrap:wrap;margin-bottom:8px}
.lead{color:var(--soft);overflow-wrap:anywhere}
.gap{display:block;height:0;overflow:hidden}
.pill{font-size:.8rem;font-weight:600;padding:1px 10px;border:1px solid currentColor;
border-radius:99px;
white-space:nowrap;color:var(--soft)}
.pill.good{color:var(--good)}.pill.bad{color:var(--bad)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:12px 24px;
margin:20px 0;
padding:18px 20px;background:var(--panel);border:1px solid var(--line);border-radius:10px}
.facts div{min-width:0}.facts dt{font-size:.78rem;color:var(--soft)}
.facts dd{margin:0;overflow-wrap:anywhere}.facts .wide{grid-column:1/-1}
.callout{border:1px solid var(--bad);background:var(--badbg);border-radius:10px;padding:12px 16px;
margin:16px 0;overflow-wrap:anywhere}.callout p:last-child{margin:0}
nav{position:sticky;top:0;z-index:2;background:var(--bg);padding-top:10px;padding-bottom:10px;
display:flex;gap:8px 20px;align-items:center;flex-wrap:wrap;border-bottom:1px solid var(--line)}
nav ul{display:flex;gap:4px 18px;flex-wrap:wrap}
#tools{margin-left:auto;display:flex;gap:8px;align-items:center;font-size:.86rem}
#tools[hidden]{display:none}
input,button{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);
border-radius:6px;padding:3px 9px}button{cursor:pointer}input{width:11rem}
.panel{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:14px 16px;
margin-bottom:14px}
.scroll{overflow-x:auto;position:relative}
.legend{margin:10px 0 0;font-size:.82rem;color:var(--soft);display:flex;gap:6px 8px;flex-wrap:wrap;
align-items:center}
svg{display:block}.strip .back{fill:transparent}.strip a:hover .back{fill:var(--mark)}
.tag{display:inline-block;font-size:.74rem;font-weight:600;line-height:1.5;padding:0 7px;
border-radius:5px;border:1px solid currentColor;color:var(--k,var(--soft));white-space:nowrap}
.k-instruction{--k:var(--instruction);fill:var(--instruction)}
.k-variable{--k:var(--variable);fill:var(--variable)}
.k-history{--k:var(--history);fill:var(--history)}.k-tool{--k:var(--tool);fill:var(--tool)}
.k-context{--k:var(--context);fill:var(--context)}.k-artifact{--k:var(--artifact);
fill:var(--artifact)}
.k-input{--k:var(--input);fill:var(--input)}.k-other{--k:var(--other);fill:var(--other)}
table{border-collapse:collapse;width:100%;font-size:.88rem;background:var(--panel)}
th,td{text-align:left;vertical-align:top;padding:6px 12px;border-bottom:1px solid var(--line);
overflow-wrap:break-word}
td:last-child{overflow-wrap:anywhere;min-width:9rem}
th{font-size:.76rem;font-weight:600;color:var(--soft);white-space:nowrap}
tr:last-child td{border-bottom:0}tr:target td,.turn:target>summary,li:target{background:var(--mark)}
#timeline .scroll table,#events .scroll,#state .scroll,.route .scroll,.variable .scroll{
border:1px solid var(--line);border-radius:8px}
#timeline td:nth-child(2),#timeline td:nth-child(4){white-space:nowrap}
#timeline td:nth-child(5){width:24%;min-width:120px}
#timeline td:nth-child(8){width:30%}
td:first-child,.numbers,.size{font-variant-numeric:tabular-nums}
.d1{padding-left:16px}.d2{padding-left:32px}.d3{padding-left:48px}.d4{padding-left:64px}
.bar{width:100%;height:10px;margin-top:6px;background:var(--code);border-radius:3px;overflow:hidden}
.bar rect{fill:var(--accent)}
.seq{font-size:.78rem;color:var(--soft);font-variant-numeric:tabular-nums;
border:1px solid var(--line);
border-radius:4px;padding:0 4px;white-space:nowrap}
details{background:var(--panel)}
summary{cursor:pointer}
.turn,.variable,.artifact,.decision{border:1px solid var(--line);border-radius:10px;
margin-bottom:8px}
.many .turn{content-visibility:auto;contain-intrinsic-size:auto 48px}
.turn>summary,.variable>summary,.artifact>summary,.decision>summary{padding:10px 16px;
border-radius:10px;
overflow-wrap:anywhere}
.turn>summary{display:flex;gap:4px 14px;align-items:baseline;flex-wrap:wrap}
.turn>summary::before{content:"▸";color:var(--soft)}.turn[open]>summary::before{content:"▾"}
.turn>summary::-webkit-details-marker{display:none}
.bad-turn{border-color:var(--bad)}
.numbers{font-size:.86rem}.onward{margin-left:auto;font-size:.86rem}.self{color:var(--soft)}
.body{padding:0 16px 18px}.proof{font-size:.82rem;overflow-wrap:anywhere}
.variable>:not(summary),.artifact>:not(summary),.decision>:not(summary){margin-left:16px;
margin-right:16px}
.variable>:last-child,.artifact>:last-child,.decision>:last-child{margin-bottom:16px}
.columns{display:grid;grid-template-columns:minmax(0,1.25fr) minmax(0,1fr);gap:8px 32px}
.shares{width:100%;height:12px;margin:0 0 12px;border-radius:4px;overflow:hidden}
.pieces>li{border-left:3px solid var(--k,var(--line));padding:2px 0 2px 12px;margin-bottom:12px}
.piece-head{margin:0;display:flex;gap:2px 8px;flex-wrap:wrap;align-items:baseline}
.piece-head .size{margin-left:auto;font-size:.82rem}
.reason,.same{font-size:.84rem;margin-bottom:4px;overflow-wrap:anywhere}
.messages>li{margin:0 0 8px}.messages p{margin:0 0 2px;font-size:.86rem}
.long>summary,.part>summary,.exchanges>summary{padding:6px 12px;background:var(--code);
border-radius:6px;
font-size:.86rem;overflow-wrap:anywhere}
.steps>li{padding:4px 0 4px 14px;border-left:2px solid var(--line);font-size:.9rem;
overflow-wrap:anywhere}.steps .steps{margin-top:2px}
.steps pre{margin-top:4px}
.lines li{white-space:pre-wrap;font-size:.9rem;overflow-wrap:anywhere}.lines{margin:10px 0}
.route{margin-top:8px}
.plan ol{display:flex;flex-direction:column;gap:8px}
.node{border:1px solid var(--line);border-left:4px solid var(--line);border-radius:8px;
padding:8px 12px;
background:var(--panel);font-size:.9rem;overflow-wrap:anywhere}
.node p{margin:0}.node.good{border-left-color:var(--good);color:inherit}
.node.bad{border-left-color:var(--bad);color:inherit}.node.open{border-left-color:var(--accent)}
.node.untaken{opacity:.75;border-style:dashed}.node.skipped{border-left-style:dotted}
.ways{display:flex;gap:12px;margin-top:8px;overflow-x:auto;padding-bottom:4px}
.way .ways{flex-direction:column}.way .way{min-width:0;flex-basis:auto}
.way{flex:1 1 220px;min-width:220px;background:var(--bg);border-radius:8px;padding:8px}
.way-name{font-size:.8rem;color:var(--soft);margin:0 0 6px}.node>.node{margin-top:8px}
.happened{font-size:.84rem;color:var(--soft);margin-top:2px}
main{padding-bottom:64px}
[data-out]{display:none!important}
@media (max-width:760px){header,nav,main{padding-left:14px;padding-right:14px}
.columns{grid-template-columns:minmax(0,1fr)}nav{position:static}#tools{margin-left:0;
flex-wrap:wrap}
.onward{margin-left:0}.way{flex-basis:170px;min-width:170px}
table,tbody,tr,td{display:block;width:100%}thead{display:none}
tr{padding:8px 12px;border-bottom:1px solid var(--line)}
td,#timeline td:nth-child(n){border:0;padding:1px 0;width:auto;display:flex;gap:10px;
white-space:normal}
td:empty{display:none!important}
td[data-label]::before{content:attr(data-label);color:var(--soft);font-size:.78rem;flex:0 0 76px}

#timeline tr{display:flex;flex-wrap:wrap;gap:2px 10px}
#timeline td:nth-child(n){display:block}#timeline td:nth-child(n)::before{content:none}
#timeline td:nth-child(2){font-weight:600}
#timeline td:nth-child(5),#timeline td:nth-child(8){flex:1 0 100%}
#timeline td:nth-child(6)::after{content:" tokens"}#timeline td:nth-child(7)::after{content:" used"}
.d1,.d2,.d3,.d4{padding-left:0}td:last-child{min-width:0}}
@media print{:root{--bg:#fff;--panel:#fff;--ink:#000;--soft:#444;--line:#ccc;--code:#f6f6f6}
nav,.skip,.self{display:none}body{font-size:10pt}header,main{max-width:none;padding:0}
.turn,.variable,.artifact,.decision{content-visibility:visible;break-inside:auto}
details::details-content{content-visibility:visible;block-size:auto;display:block}
.columns{grid-template-columns:minmax(0,1fr)}h2,h3,h4,summary{break-after:avoid}
tr,.piece-head,.callout{break-inside:avoid}.scroll,.ways{overflow:visible;flex-wrap:wrap}}
"""

SCRIPT = """
(() => {
  const all = (selector) => document.querySelectorAll(selector);
  const folded = () => all(".turn, .variable, .artifact, .decision");
  const reveal = () => {
    const anchor = decodeURIComponent(location.hash.slice(1));
    const target = anchor && document.getElementById(anchor);
    for (let each = target; each; each = each.parentElement)
      if (each.tagName === "DETAILS") each.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  const open = (state) => () => folded().forEach((each) => { each.open = state; });
  document.getElementById("open-all").onclick = open(true);
  document.getElementById("close-all").onclick = open(false);
  let waiting;
  document.getElementById("filter").oninput = (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const words = event.target.value.toLowerCase();
      for (const each of [...all("main tbody tr"), ...folded()])
        each.toggleAttribute("data-out", !each.textContent.toLowerCase().includes(words));
      for (const each of all("details tbody tr[data-out]")) each.removeAttribute("data-out");
    }, 150);
  };
  document.getElementById("tools").hidden = false;
})();
"""
