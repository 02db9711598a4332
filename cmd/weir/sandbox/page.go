package sandbox

// pageHTML is a page with a query box, so that users can look at the received
// samples without another tool.
const pageHTML = `
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>weir sandbox</title>
<meta name="viewport" content="width=device-width">
<style>
 :root { color-scheme: light dark }
 body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem }
 input { font: inherit; width: 100%; padding: .5rem; box-sizing: border-box }
 table { border-collapse: collapse; width: 100%; margin-top: 1rem; font-family: ui-monospace, monospace; font-size: 13px }
 td { border-top: 1px solid #8884; padding: .25rem .5rem; word-break: break-all } td:last-child { text-align: right }
</style>
<h1>weir sandbox</h1>
<p>A throwaway Prometheus. It answers PromQL here and on <code>/api/v1/query</code>; its data is gone when weir stops.</p>
<form><input name="query" value="up" autofocus spellcheck="false"></form>
<table></table><p id="note"></p>
<script>
const form = document.forms[0], table = document.querySelector('table'), note = document.getElementById('note');
const name = m => (m.__name__ || '') + '{' + Object.entries(m).filter(([k]) => k !== '__name__').map(([k, v]) => k + '=' + JSON.stringify(v)).join(', ') + '}';
async function ask() {
  const r = await (await fetch('/api/v1/query?query=' + encodeURIComponent(form.query.value))).json();
  table.replaceChildren(); note.textContent = r.error || '';
  if (r.error) return;
  const rows = r.data.resultType === 'vector' ? r.data.result.map(s => [name(s.metric), s.value ? s.value[1] : 'histogram']) : [[r.data.resultType, JSON.stringify(r.data.result)]];
  for (const row of rows.slice(0, 500)) { const tr = table.insertRow(); for (const c of row) tr.insertCell().textContent = c; }
  note.textContent = rows.length + ' results' + (rows.length > 500 ? ', the first 500 shown' : '');
}
form.onsubmit = e => { e.preventDefault(); ask(); };
ask();
</script>
</html>`
